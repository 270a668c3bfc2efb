"""Pipeline schedules, one file each; `table` lists them."""
