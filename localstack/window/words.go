package window

// word is a word that the diagram uses, and its meaning.
type word struct{ Word, Meaning string }

var words = []word{
	{"idempotency key", "what the client calls its operation. All repetitions of one operation have the same key."},
	{"guard", "the part of a function that reads the key, locks the record and decides whether the handler runs."},
	{"handler", "the function's own code, which does what the client asks for."},
	{"record", "the item in DynamoDB that belongs to one key, of one caller, on one route."},
	{"attempt", "one try to carry the operation out. Attempt 1 locks the record. When it dies, attempt 2 takes the record over."},
	{"lease", "how long an attempt may keep the lock: as long as the function may run, and a margin. \"Lease ends\" is when the next attempt may take over."},
	{"expires", "when the record and its answer may be forgotten. Until then, repetitions get the stored answer."},
	{"token", "a random value that each attempt writes into the record. DynamoDB accepts a write only from the attempt whose token the record has."},
	{"fingerprint", "a hash of what the client asked for. It tells another body under the same key."},
	{"effects", "the handler's own writes, such as the payment and the debit. DynamoDB commits them together with the answer, or not at all."},
	{"step", "a part of the handler whose result is stored in the record, so that the next attempt does not do that part again."},
	{"a call inside key …", "an operation with a record of its own that a handler carries out, such as telling an outside service."},
	{"held", "under policy hold, a record whose attempt has died: an operator must decide before anybody runs the handler again."},
	{"dead", "in progress, but the lease is over: the attempt has died or is late."},
	{"world", "what no party does: the network, or time that passes."},
}
