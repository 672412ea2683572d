package window

// word is a word that the diagram uses, and its meaning.
type word struct{ Word, Meaning string }

var words = []word{
	{"idempotency key", "what the client calls its operation. All repetitions of one operation have the same key."},
	{"guard", "the part of a function that reads the key, locks the record and decides whether the handler runs."},
	{"handler", "the function's own code, which does what the client asks for."},
	{"Lambda", "what runs the functions' processes, here an emulator, together with the gateway in front of them. Lambda answers when a process can't."},
	{"record", "the item in DynamoDB that belongs to one key, of one caller, on one route."},
	{"scope", "whose key it is: the function, the route and the caller. The same key in another scope has another record."},
	{"attempt", "one try to carry the operation out. Attempt 1 locks the record. When it dies, attempt 2 takes the record over."},
	{"lease", "how long an attempt may keep the lock: as long as the function may run, and a margin. \"Lease ends\" is when the next attempt may take over. The record keeps that time when it is completed, and it means nothing then."},
	{"expires", "when the record and its answer may be forgotten. Until then, repetitions get the stored answer. The raw item's expiration is one hour later: until then, a write that arrives late finds the item and is refused."},
	{"token", "a random value that each attempt writes into the record. DynamoDB accepts a write only from the attempt whose token the record has."},
	{"ClientRequestToken", "a random value in a transaction. If a transaction with the same value arrives again within 10 minutes, DynamoDB says that it was done, and writes nothing again. It has nothing to do with the record's token."},
	{"fingerprint", "a hash of what the client asked for. It tells another body under the same key. In the raw item it is called validation."},
	{"outcome", "of a completed record: succeeded, or failed if the answer says that the operation was refused for good. Both are stored and returned."},
	{"effects", "the handler's own writes, such as the payment and the debit. DynamoDB commits them together with the answer, or not at all."},
	{"step", "a part of the handler whose result is stored in the record, so that the next attempt does not do that part again, such as a call to an outside service."},
	{"a call inside key …", "an operation with a record of its own that a handler carries out, such as a reservation that must happen once."},
	{"released", "said of a record that its attempt, or an operator, has given back without an answer: the next request runs the handler at once."},
	{"policy", "what becomes of a record whose attempt has died: rerun lets the next request take it over, hold lets it wait for an operator."},
	{"held", "under policy hold, a record whose attempt has died: an operator must decide before anybody runs the handler again."},
	{"dead", "in progress, but the lease is over: the attempt has died or is late."},
	{"world", "what no party does: the network, or time that passes."},
	{"numbers", "of requests, processes and stories go on in a new diagram: they count since up has started."},
}
