"""The broker: one asyncio process between the streams of the system and the connections of its subscribers."""
