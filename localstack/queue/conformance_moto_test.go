package queue_test

// motoAnswers is what moto 5.2.5 answers instead of the table's lines, by case
// and line; "" where it says nothing. By AWS's documentation the table is right
// in all of them; the comments name the reason. A line that moto gets right one
// day fails TestSDK_CrossCheck, and goes away here.
var motoAnswers = map[string]map[int]string{
	"CreateQueue refuses names": {
		0: "standard: InvalidParameterValue Bad Request",
		3: "standard: ok", // .fifo is the suffix of FIFO queues
	},
	"attributes by name": { // SetQueueAttributes checks nothing
		3: "set unknown: ok", 4: "set FifoQueue: ok", 5: "out of range: ok", 6: "no longer FIFO: ok",
	},
	"redrive policies": {
		2: "set: ok", 3: "set: ok", // maxReceiveCount is from 1 to 1,000
		4: "set: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
		5: "set: ok", // a FIFO target of a standard queue
		6: "set: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
		8: "set: not an API error", // it crashes
		9: "kept: false",           // the FIFO target was taken
	},
	"ListQueues pages": {
		0: "[list-c list-a list-b], more: true", // in the order of creation; AWS promises none
	},
	"DeleteQueue and its name": {
		1: "create at once: ok", // the 60 seconds
	},
	"StartMessageMoveTask": { // it has no move tasks
		2: "start: not an API error", 3: "", 4: "", 5: "", 6: "",
		7: "no dead-letter queue: not an API error", 8: "no such source: not an API error",
		9: "no such destination: not an API error", 10: "too fast: not an API error", 11: "too many tasks: not an API error",
	},
	"a message comes as it was sent": {
		4: "MD5 of system attributes: 0", // MD5OfMessageSystemAttributes is missing
	},
	"SendMessage refuses": {
		0: "empty body: ok", // at least one character
		1: "U+0000: ok", 2: "U+000B: ok", 3: "U+001F: ok", 4: "U+FFFE: ok", 5: "U+FFFF: ok",
		16: "name aws.x: ok", 17: "name Amazon.x: ok", 18: "name .x: ok", 19: "name x.: ok", 20: "name x..y: ok", 22: "name xxxxxxxx: ok",
		23: "value String: ok", 25: "value Binary: ok", // empty values
		26: "value Number: ok", // that is no number
		27: "eleven: ok",       // ten at most
		30: "deduplication: ok", 32: "long group: ok",
	},
	"sizes": {
		5: "a byte more: ok", // attributes count
	},
	"visibility and handles": {
		// An old handle deletes the message, which AWS leaves open ("might not be
		// deleted"); what follows lacks it.
		5: "in flight: 0", 6: "give back: ReceiptHandleIsInvalid Bad Request ReceiptHandleIsInvalid", 7: "visible: 0",
		8:  "not in flight: ReceiptHandleIsInvalid Bad Request ReceiptHandleIsInvalid",
		12: "deleted: ReceiptHandleIsInvalid Bad Request ReceiptHandleIsInvalid", // AWS: InvalidParameterValue
		// The model's status of ReceiptHandleIsInvalid is 404.
		13: "nonsense: ReceiptHandleIsInvalid Bad Request ReceiptHandleIsInvalid",
		14: "nonsense: ReceiptHandleIsInvalid Bad Request ReceiptHandleIsInvalid",
	},
	"batches that are refused as a whole": { // it checks the ids of sends alone
		7: "delete same id: [] 1=ReceiptHandleIsInvalid true 1=ReceiptHandleIsInvalid true",
		8: "delete bad id: [] a:b=ReceiptHandleIsInvalid true", 9: "change empty: ok",
	},
	"batches whose entries fail one by one": {
		0: "send: [a b c]", 1: "", 2: "received: x \x00 y", // InvalidMessageContents
	},
	"FIFO: groups in order": {
		7: "a 0 64", // All is without SequenceNumber
	},
	"FIFO: duplicates": {
		0: "same id: false, same sequence: true",
		3: `after the delete: "x"`, // it forgets with the message; AWS remembers for five minutes
		5: "in one batch: false",
		6: "received: ", // it still waits for x
	},
	"FIFO: what a message needs": {
		3: "long deduplication id: ok", 5: "batch without group: MissingParameter Bad Request", 6: "content-based standard queue: ok",
	},
	"FIFO: expired receipt handles": { // it deletes what may be someone else's by then
		0: "delete: ok", 1: "in a batch: [1]", 2: "still there: ",
	},
}
