"""What a corpus must not hold twice: documents, lines of many documents, texts of benchmarks."""
