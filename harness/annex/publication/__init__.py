"""Publication: a static site of many submissions, for those who publish compatibility tables."""
