"""Whether an answer to a model's task is the golden's, beside the values themselves."""
