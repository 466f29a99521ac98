"""Tables that models of classic machine learning take: which values their columns hold."""
