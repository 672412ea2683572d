//go:build !race

package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// mutatedTx is a transaction whose Commit is replaced.
type mutatedTx struct {
	lambdaidem.Tx
	commit func(context.Context, *lambdaidem.Completion) (lambdaidem.Record, error)
}

// Unwrap lets dynamostore.Enlist find the store's own transaction.
func (m mutatedTx) Unwrap() lambdaidem.Tx { return m.Tx }

func (m mutatedTx) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	return m.commit(ctx, c)
}

// committing returns a Mutation.Tx that replaces Commit.
func committing(commit func(context.Context, lambdaidem.Tx, lambdaidem.Store, *lambdaidem.Completion) (lambdaidem.Record, error)) func(lambdaidem.Tx, lambdaidem.Store, *actor) lambdaidem.Tx {
	return func(tx lambdaidem.Tx, s lambdaidem.Store, _ *actor) lambdaidem.Tx {
		return mutatedTx{tx, func(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
			return commit(ctx, tx, s, c)
		}}
	}
}

// alone returns a Mutation.Tx that commits the enlisted writes first, and completes the record
// afterwards. It changes only the completions that which selects.
func alone(which func(*lambdaidem.Completion) bool) func(lambdaidem.Tx, lambdaidem.Store, *actor) lambdaidem.Tx {
	return func(tx lambdaidem.Tx, s lambdaidem.Store, _ *actor) lambdaidem.Tx {
		without := &lambdaidem.Completion{Alone: true}
		return mutatedTx{tx, func(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
			if !which(c) {
				return tx.Commit(ctx, c)
			}
			if rec, err := tx.Commit(ctx, without); err != nil {
				return rec, err
			}
			return s.Complete(ctx, c.Lease, c.Result)
		}}
	}
}

// transactItem is one action of a transaction: its kind, such as Put, and its fields.
type transactItem map[string]map[string]json.RawMessage

// inCommit returns a Mutation.Request that changes the record's action in a transaction, if there
// is one.
func inCommit(change func(action map[string]json.RawMessage)) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		if op != "TransactWriteItems" || parseTransaction(body).record == noRecord {
			return body
		}
		var doc map[string]json.RawMessage
		var items []json.RawMessage
		var first transactItem
		must(json.Unmarshal(body, &doc), json.Unmarshal(doc["TransactItems"], &items), json.Unmarshal(items[0], &first))
		for _, action := range first {
			change(action)
		}
		items[0] = marshal(first)
		doc["TransactItems"] = marshal(items)
		return marshal(doc)
	}
}

// conditionInCommit returns a Mutation.Request that replaces parts of the record's condition in a
// transaction. Its arguments are those of strings.NewReplacer.
func conditionInCommit(oldNew ...string) func(string, []byte) []byte {
	return inCommit(func(action map[string]json.RawMessage) {
		var condition string
		must(json.Unmarshal(action["ConditionExpression"], &condition))
		action["ConditionExpression"] = marshal(strings.NewReplacer(oldNew...).Replace(condition))
	})
}

func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	must(err)
	return text
}

// tokenOfKey derives the transaction's token from the record's ID alone.
func tokenOfKey(op string, body []byte) []byte {
	if op != "TransactWriteItems" {
		return body
	}
	var doc map[string]json.RawMessage
	must(json.Unmarshal(body, &doc))
	i := bytes.Index(body, []byte(`lambdaidem#`))
	if i < 0 {
		return body
	}
	doc["ClientRequestToken"] = marshal(string(body[i+len("lambdaidem#") : i+len("lambdaidem#")+30]))
	return marshal(doc)
}

// mismatchIsDone treats the error that a token was used with other bytes as a success.
func mismatchIsDone(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	rec, err := tx.Commit(ctx, c)
	if err != nil && strings.Contains(err.Error(), memdynamo.IdempotentParameterMismatch) {
		return lambdaidem.Record{ID: c.Lease.ID, State: lambdaidem.Completed, Token: c.Lease.Token, Result: c.Result}, nil
	}
	return rec, err
}

// reasons returns a Mutation.Reply for canceled transactions that write a record. It replaces their
// list of CancellationReasons by the result of change.
func reasons(change func([]json.RawMessage) []json.RawMessage) func(string, []byte, int, []byte) []byte {
	return func(op string, request []byte, status int, body []byte) []byte {
		if op != "TransactWriteItems" || status == 200 || cancellation(body) == nil || parseTransaction(request).record == noRecord {
			return body
		}
		var doc map[string]json.RawMessage
		var all []json.RawMessage
		must(json.Unmarshal(body, &doc), json.Unmarshal(doc["CancellationReasons"], &all))
		doc["CancellationReasons"] = marshal(change(all))
		return marshal(doc)
	}
}

// failedCondition reports whether a reason is a failed condition.
func failedCondition(reason json.RawMessage) bool {
	return bytes.Contains(reason, []byte(`"`+memdynamo.ReasonConditionalCheckFailed+`"`))
}

// effectMutations are mistakes with transactions.
var effectMutations = []mistake{
	{Mutation{Name: "completion outside the transaction", Tx: alone(func(c *lambdaidem.Completion) bool { return c.Claim == nil && !c.Alone })}, []Check{CheckTogether}},
	{Mutation{Name: "transaction without the lease's condition", Request: conditionInCommit(token, always("#token", ":token"), "#status = :in_progress", always("#status", ":in_progress"))}, []Check{CheckFenced, CheckOneEffect}},
	{Mutation{Name: "transaction under any token", Request: conditionInCommit(token, always("#token", ":token"))}, []Check{CheckFenced}},
	{Mutation{Name: "transaction's token made of the key", Request: tokenOfKey}, []Check{CheckSameBytes}},
	{Mutation{Name: "transaction's token made of the key, and taken for done", Request: tokenOfKey, Tx: committing(mismatchIsDone)}, []Check{CheckCreated, CheckFirstAnswer}},
	{Mutation{Name: "business reason read before the record's", Reply: reasons(func(all []json.RawMessage) []json.RawMessage {
		if slices.ContainsFunc(all[1:], failedCondition) {
			all[0] = json.RawMessage(`{"Code":"None"}`)
		}
		return all
	})}, []Check{CheckRecordFirst}},
	{Mutation{Name: "reasons read in the wrong order", Reply: reasons(func(all []json.RawMessage) []json.RawMessage {
		if len(all) > 1 {
			all[0], all[1] = all[1], all[0]
		}
		return all
	})}, []Check{CheckRecordFirst}},
	{Mutation{Name: "conflict taken for a failed condition", Reply: reasons(func(all []json.RawMessage) []json.RawMessage {
		for i := range all[1:] {
			all[1+i] = bytes.ReplaceAll(all[1+i], []byte(memdynamo.ReasonTransactionConflict), []byte(memdynamo.ReasonConditionalCheckFailed))
		}
		return all
	})}, []Check{CheckRecordFirst}},
	{Mutation{Name: "transaction sent again with other bytes", Request: func(op string, body []byte) []byte {
		if op != "TransactWriteItems" {
			return body
		}
		return append(bytes.Clone(body), strings.Repeat(" ", time.Now().Nanosecond()%97)...)
	}}, []Check{CheckSameBytes}},
	{Mutation{Name: "unguarded transaction sent again under another token", Tx: committing(func(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		another := *c
		return tx.Commit(ctx, &another)
	})}, []Check{CheckUnguarded}},
	{Mutation{Name: "optimistic answer sent before the record was asked", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, get: func(context.Context, string, time.Time) (lambdaidem.Record, error) { return lambdaidem.Record{}, nil }}
	}}, []Check{CheckConsulted}},
	{Mutation{Name: "optimistic claim judged at its completion", Plan: longerThanTTL, Tx: judgedAtItsEnd}, []Check{CheckCompletedNeverChanges}},
	{Mutation{Name: "optimistic answer sent though the record could not be claimed", Tx: committing(func(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		rec, err := tx.Commit(ctx, c)
		if c.Claim != nil && errors.Is(err, lambdaidem.ErrLeaseLost) {
			return lambdaidem.Record{ID: c.Lease.ID, State: lambdaidem.Completed, Token: c.Lease.Token, Result: c.Result}, nil
		}
		return rec, err
	})}, []Check{CheckCreated, CheckFirstAnswer}},
	{Mutation{Name: "dead lease claimed without comparing what was seen", Request: conditionInCommit(seenTok, always("#token", ":seen_token"), seenSt, always("#status", ":seen_state"), seenEnd, always("#lease_end", ":seen_end"), notDone, always("#status", ":completed"))}, []Check{CheckCompletedNeverChanges, CheckLeaseBeforeLock, CheckOneEffect}},
	{Mutation{Name: "record claimed whatever it is", Request: conditionInCommit("attribute_not_exists(#id) OR", "attribute_not_exists(#id) OR attribute_exists(#id) OR")}, []Check{CheckCompletedNeverChanges, CheckLeaseBeforeLock}},
	{Mutation{Name: "held record claimed", Tx: committing(func(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		rec, err := tx.Commit(ctx, c)
		if rec.State == lambdaidem.InProgress && rec.Expires.IsZero() {
			rec.Expires = rec.LeaseEnd.Add(time.Hour)
		}
		return rec, err
	})}, []Check{CheckHeld}},
	{Mutation{Name: "unguarded writes lost", Tx: committing(func(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		if c.Alone {
			return lambdaidem.Record{}, nil
		}
		return tx.Commit(ctx, c)
	})}, []Check{CheckUnguarded}},
	{Mutation{Name: "failed open, committed alone", Tx: func(tx lambdaidem.Tx, s lambdaidem.Store, a *actor) lambdaidem.Tx {
		if a.optimistic {
			return tx
		}
		return alone(func(c *lambdaidem.Completion) bool { return c.Claim != nil })(tx, s, a)
	}}, []Check{CheckTogether}},
	{Mutation{Name: "writes committed with every answer", Tx: func(tx lambdaidem.Tx, _ lambdaidem.Store, _ *actor) lambdaidem.Tx { return always200{tx} }}, []Check{CheckRefused}},
	{Mutation{Name: "writes dropped with every answer", Tx: func(tx lambdaidem.Tx, _ lambdaidem.Store, _ *actor) lambdaidem.Tx { return never{tx} }}, []Check{CheckTogether}},
	{Mutation{Name: "unknown transaction taken for one that did not happen", Tx: committing(func(ctx context.Context, tx lambdaidem.Tx, _ lambdaidem.Store, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		rec, err := tx.Commit(ctx, c)
		if e := (*lambdaidem.StoreError)(nil); errors.As(err, &e) && !e.NotApplied {
			return rec, &lambdaidem.Rejected{Err: lambdaidem.Retryable(errCard)}
		}
		return rec, err
	})}, []Check{CheckUnguarded, CheckStoredEndings, CheckRefused}},
}

// judgedAtItsEnd changes a claiming completion, so that the store judges by the time of the
// completion whether the record has expired.
func judgedAtItsEnd(tx lambdaidem.Tx, _ lambdaidem.Store, _ *actor) lambdaidem.Tx {
	changed := map[*lambdaidem.Completion]*lambdaidem.Completion{} // the store must get the same pointer again
	return mutatedTx{tx, func(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
		if c.Claim != nil && changed[c] == nil {
			late, claim := *c, *c.Claim
			claim.Now = c.Result.At
			late.Claim, changed[c] = &claim, &late
		}
		if late := changed[c]; late != nil {
			c = late
		}
		return tx.Commit(ctx, c)
	}}
}

// always200 treats every failed answer as a success, so its writes are committed.
type always200 struct{ lambdaidem.Tx }

func (m always200) Unwrap() lambdaidem.Tx { return m.Tx }
func (m always200) Seal(o lambdaidem.Outcome) bool {
	if o == lambdaidem.OutcomeFailed {
		o = lambdaidem.OutcomeSucceeded
	}
	return m.Tx.Seal(o)
}

// never drops the enlisted writes: it says that there is nothing to commit.
type never struct{ lambdaidem.Tx }

func (m never) Unwrap() lambdaidem.Tx { return m.Tx }
func (m never) Seal(o lambdaidem.Outcome) bool {
	m.Tx.Seal(o)
	return false
}
