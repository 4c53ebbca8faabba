"""The verdict on an equation, and the report on a document as text, JSON, SARIF or HTML."""
