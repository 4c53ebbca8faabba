"""The verdict on every equation, in the order of the document, and the edit that mends it."""
