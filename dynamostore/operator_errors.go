package dynamostore

import (
	"errors"
)

// Errors of the methods of Operator. Each means that nothing was changed.
var (
	// ErrRecordChanged means that another operator or an attempt changed the record after it was
	// inspected. Release and Settle return it together with the current record.
	ErrRecordChanged = errors.New("the record is not any more what was shown")
	// ErrRecordCompleted means that an attempt completed the record, or that a purge
	// erased its answer. An operator can't change such a record.
	ErrRecordCompleted = errors.New("the record is completed, and the answer of an attempt never changes")
	// ErrRecordSettled means that an operator has already settled the record. Release
	// never changes such a record. Settle replaces the operator's answer only if
	// OperatorOptions.Again is set.
	ErrRecordSettled = errors.New("an operator has settled the record, and callers may have received that answer")
	// ErrNotEncrypted means that the operator's store has no Options.Encryption, although the
	// functions that use the record encrypt their answers. Settle returns it, unless the result
	// has no answer (lambdaidem.NoAnswer).
	ErrNotEncrypted = errors.New("the record's functions encrypt answers, and this store has no key: an answer in plain text would stay readable, and functions may refuse it")
	// ErrRecordReleased means that the record is already released. Only Release returns it.
	ErrRecordReleased = errors.New("the record is released already: the next retry runs")
	// ErrRecordGone means that there is no such record, or that it has expired. A
	// retry then counts as the first attempt, and runs the handler.
	ErrRecordGone = errors.New("there is no such record, or it has expired")
)

// errChangedOrApplied is the cause of a StoreError if it is unknown whether the operator's write
// was applied: one try got no reply, and DynamoDB refused a later try because the record has
// changed. ErrRecordChanged would be wrong here, because it means that nothing was written.
var errChangedOrApplied = errors.New("the record is not any more what was shown; an earlier try had no answer and may have been applied before the record changed: look at it again")

var errNotInspected = errors.New("dynamostore: an operator acts on what Store.Inspect has returned, and on nothing else")
