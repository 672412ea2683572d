package memdynamo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	maxActions         = 100
	maxTransactionSize = 4 << 20          // bytes of the request's items, keys, expressions and values
	maxTokenLength     = 36               // characters
	tokenLife          = 10 * time.Minute // counted from the end of the first request with the token
)

type transactWriteItemsRequest struct {
	TransactItems          []transactItem
	ClientRequestToken     *string
	ReturnConsumedCapacity string
}

// transactItem is one action. Exactly one member must be set.
type transactItem struct {
	ConditionCheck *conditionCheck
	Put            *transactPut
	Delete         *transactDelete
	Update         *transactUpdate
}

// actionParameters has the parameters that all actions share.
type actionParameters struct {
	TableName                           string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]Value
	ReturnValuesOnConditionCheckFailure string
}

type conditionCheck struct {
	Key Item
	actionParameters
}

type transactPut struct {
	Item Item
	actionParameters
}

type transactDelete struct {
	Key Item
	actionParameters
}

type transactUpdate struct {
	Key              Item
	UpdateExpression *string
	actionParameters
}

// part is one action of a transaction, and the results of its checks.
type part struct {
	kind   string // name of the action's member, as in messages
	params actionParameters
	update expression // expression of an Update
	item   Item       // item of a Put
	key    Item       // key of the other actions; aim sets it for a Put
	bound  bound

	table         *table
	before, after Item // the item before and after; nil if absent
}

// part returns the action of the item. It returns an error unless exactly one member is set.
func (i transactItem) part() (*part, error) {
	var parts []*part
	if a := i.ConditionCheck; a != nil {
		parts = append(parts, &part{kind: "conditionCheck", params: a.actionParameters, key: a.Key})
	}
	if a := i.Put; a != nil {
		parts = append(parts, &part{kind: "put", params: a.actionParameters, item: a.Item})
	}
	if a := i.Delete; a != nil {
		parts = append(parts, &part{kind: "delete", params: a.actionParameters, key: a.Key})
	}
	if a := i.Update; a != nil {
		parts = append(parts, &part{kind: "update", params: a.actionParameters, key: a.Key, update: expression{"UpdateExpression", a.UpdateExpression}})
	}
	switch len(parts) {
	case 0:
		return nil, invalidf("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
	case 1:
		return parts[0], nil
	}
	return nil, invalidf("TransactItems can only contain one of Check, Put, Update or Delete")
}

// parts returns the actions of the request, after all checks that need only the request. An error
// of these checks fails the whole request.
func (in transactWriteItemsRequest) parts() ([]*part, error) {
	var v violations
	if t := in.ClientRequestToken; t != nil {
		switch n := utf8.RuneCountInString(*t); {
		case n < 1:
			v.add("clientRequestToken", " '"+*t+"'", "Member must have length greater than or equal to 1")
		case n > maxTokenLength:
			v.add("clientRequestToken", " '"+*t+"'", "Member must have length less than or equal to %d", maxTokenLength)
		}
	}
	v.choice("returnConsumedCapacity", in.ReturnConsumedCapacity, "INDEXES", "TOTAL", "NONE")
	v.required("transactItems", in.TransactItems == nil)
	switch n := len(in.TransactItems); {
	case in.TransactItems != nil && n == 0:
		v.add("transactItems", " '[]'", "Member must have length greater than or equal to 1")
	case n > maxActions: // AWS shows the whole list here, or nothing of it in some Regions
		v.add("transactItems", "", "Member must have length less than or equal to %d", maxActions)
	}
	var parts []*part
	var notOne error
	for i, item := range in.TransactItems {
		p, err := item.part()
		if err != nil {
			if notOne == nil {
				notOne = err
			}
			continue
		}
		parts = append(parts, p)
		p.checkMembers(&v, fmt.Sprintf("transactItems.%d.member.%s.", i+1, p.kind))
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	if notOne != nil {
		return nil, notOne
	}
	for _, p := range parts {
		if err := p.bind(); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, p := range parts {
		size += p.payload()
	}
	if size > maxTransactionSize {
		return nil, invalidf("Transaction payload size cannot exceed 4MB. Payload Size: %d", size)
	}
	return parts, nil
}

// checkMembers adds the violations of the API's model in one action.
func (p *part) checkMembers(v *violations, at string) {
	v.required(at+"tableName", p.params.TableName == "")
	switch p.kind {
	case "put":
		v.required(at+"item", p.item == nil)
	case "conditionCheck":
		v.required(at+"key", p.key == nil)
		v.required(at+"conditionExpression", p.params.ConditionExpression == nil)
	case "update":
		v.required(at+"key", p.key == nil)
		v.required(at+"updateExpression", p.update.source == nil)
	default:
		v.required(at+"key", p.key == nil)
	}
	v.choice(at+"returnValuesOnConditionCheckFailure", p.params.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE")
}

// bind checks the values of the action and binds its expressions.
func (p *part) bind() (err error) {
	if p.kind == "put" {
		if p.item, err = checkedItem(p.item); err != nil {
			return err
		}
	} else if p.key, err = checkedItem(p.key); err != nil {
		return err
	}
	if p.bound, err = p.params.write().bind(p.update); err != nil {
		return err
	}
	// The size of a Put is known from the request, so an item that is too large fails the
	// request. The size after an Update is known only later, and cancels the transaction.
	if p.item.Size() > maxItemSize {
		return invalidf("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// write returns the parameters in the form that a single write has.
func (a actionParameters) write() writeParameters {
	return writeParameters{
		expressionParameters: expressionParameters{
			ExpressionAttributeNames:  a.ExpressionAttributeNames,
			ExpressionAttributeValues: a.ExpressionAttributeValues,
		},
		ConditionExpression:                 a.ConditionExpression,
		ReturnValuesOnConditionCheckFailure: a.ReturnValuesOnConditionCheckFailure,
	}
}

// payload returns the bytes that the action counts for in the limit of 4 MB. AWS documents only
// that items count; this is how DynamoDB Local counts.
func (p *part) payload() int {
	size := p.item.Size() + p.key.Size()
	for _, source := range []*string{p.params.ConditionExpression, p.update.source} {
		if source != nil {
			size += len(*source)
		}
	}
	for _, v := range p.bound.values {
		size += v.size()
	}
	return size
}

// transactWriteItems applies all actions or none. body has the bytes of the request, by which a
// repetition is recognized.
func (db *DB) transactWriteItems(in transactWriteItemsRequest, body []byte) (any, error) {
	parts, err := in.parts()
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(body)
	db.forgetTokens()
	if t := in.ClientRequestToken; t != nil {
		if done, ok := db.tokens[*t]; ok {
			if done.body != digest {
				return nil, failf(IdempotentParameterMismatch, "Specified idempotent token was used with different request parameters within the idempotency window")
			}
			return transactResult{done.read.report(in.ReturnConsumedCapacity, asRead)}, nil
		}
	}
	if err := db.aim(parts); err != nil {
		return nil, err
	}
	if err := judge(parts); err != nil {
		return nil, err
	}
	db.apply(parts)

	written, read := consumedBy(parts)
	if t := in.ClientRequestToken; t != nil {
		db.tokens[*t] = finishedTransaction{body: digest, read: read, at: db.clock()}
		db.tokensByAge = append(db.tokensByAge, *t)
	}
	return transactResult{written.report(in.ReturnConsumedCapacity, asWritten)}, nil
}

// finishedTransaction is what is remembered for a token. A transaction that was refused or
// canceled is not remembered: if it is sent again, it is evaluated again.
type finishedTransaction struct {
	body [sha256.Size]byte // digest of the request
	read tableUnits        // capacity that a repetition consumes
	at   time.Time
}

// forgetTokens removes the tokens older than tokenLife.
func (db *DB) forgetTokens() {
	for len(db.tokensByAge) > 0 {
		oldest := db.tokensByAge[0]
		if db.clock().Sub(db.tokens[oldest].at) < tokenLife {
			return
		}
		delete(db.tokens, oldest)
		db.tokensByAge = db.tokensByAge[1:]
	}
}

// aim finds the table, the key and the current item of each action. A missing table, an empty
// key, or two actions on one item fail the request. A key that does not match the table's key
// schema cancels the transaction before any condition is evaluated, and only the first such
// action gets a reason.
func (db *DB) aim(parts []*part) error {
	for _, p := range parts {
		t, err := db.lookUp(p.params.TableName)
		if err != nil {
			return err
		}
		if t.consistency == Strong {
			return invalidf("Transactions are not supported for a table with multi-Region strong consistency: %s", t.name)
		}
		p.table = t
	}
	for _, p := range parts {
		for _, k := range p.table.keys {
			if err := k.checkEmpty(p.source()[k.name]); err != nil {
				return err
			}
		}
	}
	for i, p := range parts {
		if err := p.checkKey(); err != nil {
			reasons := slices.Repeat([]reason{{Code: ReasonNone}}, len(parts))
			reasons[i] = reason{Code: ReasonValidation, Message: err.Error()}
			return canceled(reasons)
		}
	}
	type target struct{ table, key string }
	seen := map[target]bool{}
	for _, p := range parts {
		p.key = p.table.keyOf(p.source())
		at := target{p.table.name, p.table.encode(p.key)}
		if seen[at] {
			return invalidf("Transaction request cannot include multiple operations on one item")
		}
		seen[at] = true
		p.before = p.table.items[at.key]
	}
	return nil
}

// source returns the item that contains the action's key.
func (p *part) source() Item {
	if p.kind == "put" {
		return p.item
	}
	return p.key
}

func (p *part) checkKey() error {
	if p.kind == "put" {
		return p.table.checkItem(p.item)
	}
	return p.table.checkKey(p.key)
}

// judge evaluates every action on the items as they were before. If an action can't be done,
// judge returns a TransactionCanceledException.
func judge(parts []*part) error {
	reasons, failed := make([]reason, len(parts)), false
	for i, p := range parts {
		err := p.judge()
		switch e, ok := errors.AsType[*apiError](err); {
		case err == nil:
			reasons[i] = reason{Code: ReasonNone}
			continue
		case ok: // the condition failed
			reasons[i] = reason{Code: ReasonConditionalCheckFailed, Item: e.item, Message: e.message}
		default:
			reasons[i] = reason{Code: ReasonValidation, Message: err.Error()}
		}
		failed = true
	}
	if failed {
		return canceled(reasons)
	}
	return nil
}

func (p *part) judge() error {
	if err := p.table.checkPaths(p.bound.paths); err != nil {
		return err
	}
	if p.bound.update != nil {
		if err := p.table.checkWritten(p.bound.update.paths()); err != nil {
			return err
		}
	}
	if err := p.bound.meets(p.before, p.params.write()); err != nil {
		return err
	}
	switch p.kind {
	case "put":
		p.after = p.item
	case "update":
		var err error
		p.after, err = updated(p.key, p.before, p.bound.update)
		return err
	}
	return nil
}

// apply commits the writes of the transaction.
func (db *DB) apply(parts []*part) {
	db.transactions++
	for _, p := range parts {
		if p.kind == "conditionCheck" || p.before == nil && p.after == nil {
			continue
		}
		db.commit(Write{
			Table: p.table.name, Op: "TransactWriteItems", Transaction: db.transactions,
			Key: p.key, Before: p.before, After: p.after,
		}, p.table)
	}
}

type transactResult struct {
	ConsumedCapacity []capacity `json:",omitempty"`
}
