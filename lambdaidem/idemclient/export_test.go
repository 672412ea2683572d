package idemclient

// RetryAfter exports retryAfter, which has its own fuzz test.
var RetryAfter = retryAfter
