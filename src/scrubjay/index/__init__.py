"""One scope in memory: words to terms, postings, vectors, columns; nothing here touches a store."""
