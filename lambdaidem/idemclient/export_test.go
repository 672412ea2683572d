package idemclient

// RetryAfter is retryAfter, which is fuzzed alone.
var RetryAfter = retryAfter
