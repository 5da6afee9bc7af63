"""The lab: a simulator that drives the policies we ship, and the papers' figures drawn with it."""
