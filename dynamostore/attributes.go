package dynamostore

// The attributes of an item, by their standard names.
const (
	attrID          = "id"                     // S, the partition key
	attrSortKey     = ""                       // S, the sort key, with the same value as the partition key; it has no standard name, because most tables have no sort key
	attrStatus      = "status"                 // S, INPROGRESS, COMPLETED or RELEASED
	attrToken       = "token"                  // S, the fencing token
	attrAttempt     = "attempt"                // N, 1 for the first attempt, one more for each takeover
	attrLeaseEnd    = "in_progress_expiration" // N, the end of the lease, epoch milliseconds
	attrExpiration  = "expiration"             // N, epoch seconds, the TTL attribute: an hour after the record expires
	attrData        = "data"                   // S if the answer is UTF-8, else B
	attrValidation  = "validation"             // S, the request's fingerprint
	attrOutcome     = "outcome"                // S, succeeded or failed, once the record is completed
	attrScope       = "scope"                  // S, namespace, method, route and caller in readable form; the id is a hash of these and the key
	attrStartedAt   = "started_at"             // N, when the current attempt began, epoch milliseconds
	attrCompletedAt = "completed_at"           // N, when the record was completed, epoch milliseconds
	attrFailure     = "failure"                // M, the error to replay; a record that has it has no data
	attrEncoding    = "encoding"               // S, how data, parts or steps are encoded; absent: data is the plain answer, and there are no steps
	attrParts       = "parts"                  // M, count, size and checksum of an answer that has an encoding
	attrSteps       = "steps"                  // M, results of steps by name, until the record is completed
	attrInvocation  = "invocation"             // S, the Lambda request id of the current attempt
	attrLastFailure = "last_failure"           // S, why the record was released, such as the code of the attempt's error
	attrBound       = "bound"                  // S, why a retry of a released record must have the same payload; absent: it may have another one
	attrOperations  = "operations"             // L, the changes that operators made to the record
	attrEncrypts    = "encrypts"               // S, the cipher of the store that took the lease; absent: that store has no Options.Encryption
	attrErasing     = "erasing"                // M, describes the parts of an answer that a purge has yet to delete
	attrLeaseShard  = "lease_shard"            // S, partition key in Options.LeaseIndex, while the record is in progress
)

// reservedNames lists the names that Options can't give to an attribute of a record. An item
// with one of these attributes is not a record: it holds a part of a large answer.
var reservedNames = []string{attrPart}

// attribute describes one attribute of a record.
type attribute struct {
	standard    string            // the attribute's name, unless an option renames it
	placeholder string            // stands for the name in expressions, such as "#status"
	kinds       kinds             // the DynamoDB types that its values can have
	setBy       updates           // the updates that set the attribute, or remove it if the item has no value for it
	field       func(*item) field // returns the attribute's value in an item
	option      *renaming         // the option that renames the attribute; nil if there is none
}

// kinds says which DynamoDB types the values of an attribute can have. CheckTable compares them
// with the key types of the table's indexes: DynamoDB refuses an item if its value for an index key
// has another type or is empty.
type kinds string

const (
	kindString         kinds = "S"
	kindStringOrEmpty  kinds = "S, or the empty string"
	kindStringOrBinary kinds = "S or B, possibly empty"
	kindNumber         kinds = "N"
	kindList           kinds = "L"
	kindMap            kinds = "M"
)

// updates is a bit set. Each bit stands for one kind of UpdateItem request.
type updates uint8

const (
	takeover updates = 1 << iota
	completion
	release
	saving  // storing the results of steps
	holding // removing the expiry and moving the lease end; see lambdaidem.Holder
)

// itemAttributes lists the attributes of a record. All code that encodes, decodes, renames or
// updates attributes uses this list. The field setBy says which kinds of UpdateItem set or remove
// the attribute. (The PutItem that creates a record writes all attributes.) A takeover does not
// change the attributes "steps" and "operations", because they belong to the record, not to an
// attempt.
var itemAttributes = [...]attribute{
	{attrID, "#id", kindString, 0, func(itm *item) field { return (*text)(&itm.ID) },
		&renaming{"IDAttribute", func(o *Options) *string { return &o.IDAttribute }}},
	{attrSortKey, "#sort_key", kindString, 0, func(itm *item) field { return sortKey{&itm.SortKey, &itm.ID} },
		&renaming{"SortKeyAttribute", func(o *Options) *string { return &o.SortKeyAttribute }}},
	{attrStatus, "#status", kindString, takeover | completion | release, func(itm *item) field { return (*text)(&itm.Status) },
		&renaming{"StatusAttribute", func(o *Options) *string { return &o.StatusAttribute }}},
	{attrExpiration, "#expiration", kindNumber, takeover | completion | release | holding, func(itm *item) field { return &itm.Expiration },
		&renaming{"ExpirationAttribute", func(o *Options) *string { return &o.ExpirationAttribute }}},
	{attrLeaseEnd, "#lease_end", kindNumber, takeover | holding, func(itm *item) field { return &itm.LeaseEnd },
		&renaming{"InProgressExpirationAttribute", func(o *Options) *string { return &o.InProgressExpirationAttribute }}},
	{attrData, "#data", kindStringOrBinary, takeover | completion, func(itm *item) field { return (*payload)(&itm.Data) },
		&renaming{"DataAttribute", func(o *Options) *string { return &o.DataAttribute }}},
	{attrValidation, "#validation", kindString, takeover, func(itm *item) field { return (*text)(&itm.Validation) },
		&renaming{"ValidationAttribute", func(o *Options) *string { return &o.ValidationAttribute }}},
	{attrToken, "#token", kindString, takeover, func(itm *item) field { return (*text)(&itm.Token) }, nil},
	{attrAttempt, "#attempt", kindNumber, takeover, func(itm *item) field { return &itm.Attempt }, nil},
	{attrOutcome, "#outcome", kindString, takeover | completion, func(itm *item) field { return (*text)(&itm.Outcome) }, nil},
	{attrScope, "#scope", kindString, takeover, func(itm *item) field { return (*text)(&itm.Scope) }, nil},
	{attrStartedAt, "#started_at", kindNumber, takeover, func(itm *item) field { return &itm.StartedAt }, nil},
	{attrCompletedAt, "#completed_at", kindNumber, takeover | completion, func(itm *item) field { return &itm.CompletedAt }, nil},
	{attrFailure, "#failure", kindMap, takeover | completion, func(itm *item) field { return failureField{&itm.Failure} }, nil},
	{attrEncoding, "#encoding", kindStringOrEmpty, saving | completion, func(itm *item) field { return &itm.Encoding }, nil},
	{attrParts, "#parts", kindMap, completion, func(itm *item) field { return partsField{&itm.Parts} }, nil},
	{attrSteps, "#steps", kindMap, saving | completion, func(itm *item) field { return (*stepResults)(&itm.Steps) }, nil},
	{attrInvocation, "#invocation", kindString, takeover, func(itm *item) field { return (*text)(&itm.Invocation) }, nil},
	{attrLastFailure, "#last_failure", kindString, takeover | release, func(itm *item) field { return (*text)(&itm.LastFailure) }, nil},
	{attrBound, "#bound", kindString, takeover | release, func(itm *item) field { return (*text)(&itm.Bound) }, nil},
	{attrEncrypts, "#encrypts", kindString, takeover, func(itm *item) field { return (*text)(&itm.Encrypts) }, nil},
	{attrOperations, "#operations", kindList, 0, func(itm *item) field { return (*operations)(&itm.Operations) }, nil},
	{attrErasing, "#erasing", kindMap, 0, func(itm *item) field { return partsField{&itm.Erasing} }, nil},
	{attrLeaseShard, "#lease_shard", kindString, takeover | completion | release, func(itm *item) field { return (*text)(&itm.LeaseShard) }, nil},
}
