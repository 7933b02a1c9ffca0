"""Learn, then replay: steps that are known are credited instead of counted, with the dispatch mode off."""
