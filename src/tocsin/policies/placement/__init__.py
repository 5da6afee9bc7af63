"""Initial placement: which broker a newcomer gets (stage 1 of the multistage framework, section 5.1 of its paper)."""
