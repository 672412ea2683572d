package dynamostore

import (
	"strings"
)

// The attributes of an item, by their standard names.
const (
	attrID          = "id"                     // S, the partition key
	attrStatus      = "status"                 // S
	attrToken       = "token"                  // S, the fencing token
	attrAttempt     = "attempt"                // N
	attrLeaseEnd    = "in_progress_expiration" // N, epoch milliseconds
	attrExpiration  = "expiration"             // N, epoch seconds, the TTL attribute: see deletionOf
	attrData        = "data"                   // S while it is UTF-8, else B
	attrValidation  = "validation"             // S, the request's fingerprint
	attrOutcome     = "outcome"                // S
	attrScope       = "scope"                  // S
	attrStartedAt   = "started_at"             // N, epoch milliseconds
	attrCompletedAt = "completed_at"           // N, epoch milliseconds
	attrFailure     = "failure"                // M
	attrEncoding    = "encoding"               // S, absent: data is the value as it is, and there are no steps
	attrParts       = "parts"                  // M, with an encoding of an answer
	attrSteps       = "steps"                  // M, until it is completed
	attrInvocation  = "invocation"             // S, Lambda's request id of the attempt
	attrLastFailure = "last_failure"           // S, while it is released: the code of what released it
	attrBound       = "bound"                  // S, absent: a release forgets the payload
	attrOperations  = "operations"             // L, what operators did
	attrEncrypts    = "encrypts"               // S, absent: the store that took the lease has no Options.Encryption
	attrErasing     = "erasing"                // M, parts that a purge has yet to delete
	attrLeaseShard  = "lease_shard"            // S, while it is in progress, with Options.LeaseIndex
)

// keptNames are for the parts of an answer: no attribute may be renamed to one of
// them.
var keptNames = []string{attrPart}

// attribute is all that this package knows of one attribute.
type attribute struct {
	standard    string
	placeholder string            // of its name, in expressions
	kinds       kinds             // the types of its value in the table
	setBy       updates           // the updates that write it, or remove it where they have no value
	field       func(*item) field // its value in an item
	option      *renaming         // nil: it can't be renamed
}

// kinds names the DynamoDB types that the values of one attribute have.
type kinds string

const (
	kindString         kinds = "S"
	kindStringOrEmpty  kinds = "S, or the empty string"
	kindStringOrBinary kinds = "S or B, possibly empty"
	kindNumber         kinds = "N"
	kindList           kinds = "L"
	kindMap            kinds = "M"
)

// updates is a set of UpdateItems.
type updates uint8

const (
	takeover updates = 1 << iota
	completion
	release
	saving // of steps
)

// itemAttributes is the one list of attributes. What is written, read, named in
// an expression or renamed by an option is found here and nowhere else. A lock
// writes them all; a takeover all but the key, the steps and the operations, which
// are the record's: it leaves nothing else of the old attempt.
var itemAttributes = [...]attribute{
	{attrID, "#id", kindString, 0, func(it *item) field { return (*text)(&it.ID) },
		&renaming{"IDAttribute", func(o *Options) *string { return &o.IDAttribute }}},
	{attrStatus, "#status", kindString, takeover | completion | release, func(it *item) field { return (*text)(&it.Status) },
		&renaming{"StatusAttribute", func(o *Options) *string { return &o.StatusAttribute }}},
	{attrExpiration, "#expiration", kindNumber, takeover | completion | release, func(it *item) field { return &it.Expiration },
		&renaming{"ExpirationAttribute", func(o *Options) *string { return &o.ExpirationAttribute }}},
	{attrLeaseEnd, "#lease_end", kindNumber, takeover, func(it *item) field { return &it.LeaseEnd },
		&renaming{"InProgressExpirationAttribute", func(o *Options) *string { return &o.InProgressExpirationAttribute }}},
	{attrData, "#data", kindStringOrBinary, takeover | completion, func(it *item) field { return (*payload)(&it.Data) },
		&renaming{"DataAttribute", func(o *Options) *string { return &o.DataAttribute }}},
	{attrValidation, "#validation", kindString, takeover, func(it *item) field { return (*text)(&it.Validation) },
		&renaming{"ValidationAttribute", func(o *Options) *string { return &o.ValidationAttribute }}},
	{attrToken, "#token", kindString, takeover, func(it *item) field { return (*text)(&it.Token) }, nil},
	{attrAttempt, "#attempt", kindNumber, takeover, func(it *item) field { return &it.Attempt }, nil},
	{attrOutcome, "#outcome", kindString, takeover | completion, func(it *item) field { return (*text)(&it.Outcome) }, nil},
	{attrScope, "#scope", kindString, takeover, func(it *item) field { return (*text)(&it.Scope) }, nil},
	{attrStartedAt, "#started_at", kindNumber, takeover, func(it *item) field { return &it.StartedAt }, nil},
	{attrCompletedAt, "#completed_at", kindNumber, takeover | completion, func(it *item) field { return &it.CompletedAt }, nil},
	{attrFailure, "#failure", kindMap, takeover | completion, func(it *item) field { return failureField{&it.Failure} }, nil},
	{attrEncoding, "#encoding", kindStringOrEmpty, saving | completion, func(it *item) field { return &it.Encoding }, nil},
	{attrParts, "#parts", kindMap, completion, func(it *item) field { return partsField{&it.Parts} }, nil},
	{attrSteps, "#steps", kindMap, saving | completion, func(it *item) field { return (*stepResults)(&it.Steps) }, nil},
	{attrInvocation, "#invocation", kindString, takeover, func(it *item) field { return (*text)(&it.Invocation) }, nil},
	{attrLastFailure, "#last_failure", kindString, takeover | release, func(it *item) field { return (*text)(&it.LastFailure) }, nil},
	{attrBound, "#bound", kindString, takeover | release, func(it *item) field { return (*text)(&it.Bound) }, nil},
	{attrEncrypts, "#encrypts", kindString, takeover, func(it *item) field { return (*text)(&it.Encrypts) }, nil},
	{attrOperations, "#operations", kindList, 0, func(it *item) field { return (*operations)(&it.Operations) }, nil},
	{attrErasing, "#erasing", kindMap, 0, func(it *item) field { return partsField{&it.Erasing} }, nil},
	{attrLeaseShard, "#lease_shard", kindString, takeover | completion | release, func(it *item) field { return (*text)(&it.LeaseShard) }, nil},
}

// renaming is the field of Options that renames an attribute.
type renaming struct {
	field string
	name  func(*Options) *string
}

// layout is how the attributes are called in one table, in the order of
// itemAttributes.
type layout [len(itemAttributes)]column

type column struct {
	name   string // in the table; empty: this store neither reads nor writes it
	value  string // the placeholder of its new value, ":status"
	assign string // "#status = :status"
}

// layout returns the one that the options ask for.
func (o *Options) layout() *layout {
	l := &layout{}
	for i := range itemAttributes {
		a := &itemAttributes[i]
		if a.standard == attrLeaseShard && o.LeaseIndex == "" {
			continue // what is opt-in costs nothing where it is off
		}
		value := ":" + a.placeholder[1:]
		l[i] = column{name: a.standard, value: value, assign: a.placeholder + " = " + value}
		if a.option != nil {
			l[i].name = *a.option.name(o)
		}
	}
	return l
}

// id returns the name of the partition key.
func (l *layout) id() string { return l[0].name }

// nameOf returns the name of an attribute in this table.
func (l *layout) nameOf(standard string) string {
	for i := range itemAttributes {
		if itemAttributes[i].standard == standard {
			return l[i].name
		}
	}
	panic("no attribute is called " + standard)
}

// names says what the placeholders stand for in an expression that sets what
// the updates set, under the condition: no others, or DynamoDB refuses it.
func (l *layout) names(sets updates, condition string) map[string]string {
	names := map[string]string{}
	for i := range itemAttributes {
		if a := &itemAttributes[i]; l[i].name != "" && (a.setBy&sets != 0 || mentions(condition, a.placeholder)) {
			names[a.placeholder] = l[i].name
		}
	}
	return names
}

// mentions reports whether the placeholder is a word of the condition: "#start" is
// none of "#started_at".
func mentions(condition, placeholder string) bool {
	for rest := condition; ; {
		_, after, found := strings.Cut(rest, placeholder)
		if !found {
			return false
		}
		if after == "" || strings.IndexByte(" (),", after[0]) >= 0 {
			return true
		}
		rest = after
	}
}
