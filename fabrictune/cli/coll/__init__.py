"""`fabrictune coll`: collectives and job start-up."""
