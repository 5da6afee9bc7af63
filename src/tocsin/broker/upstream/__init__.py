"""Where a broker's streams come from: the data cluster's channels, and topics, which brokers own among themselves."""
