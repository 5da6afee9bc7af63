"""The vocabulary: plain frozen values that every other room shares."""
