"""What each kind of record answers: one sentence at the top of its page, with what to apply below it."""
