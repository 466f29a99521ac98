"""Which provider, with which option, for a model or a folder of models; and what optimization does to one."""
