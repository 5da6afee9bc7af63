"""What travels between subscribers and brokers: messages, positions, codes. No input or output here."""
