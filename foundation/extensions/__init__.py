"""Extensions: entries of the project's tables that come from a user's file or from an installed package."""
