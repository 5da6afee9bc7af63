"""The statement language: text in, frozen statements out, and canonical text back.

``parser`` reads, ``printer`` writes, ``statements`` is what lies between. The text of a SELECT is
kept as written, with the place where it starts; the compiler reads it.
"""
