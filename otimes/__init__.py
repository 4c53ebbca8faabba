__otimes__ = "otimes"
