package window

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// readRecord reads and decodes the record that an exchange has changed. It returns nil if
// another attempt has changed the record since: the event of that change shows the record.
func (w *Window) readRecord(a rehearsal.Access, x *exchange) *sequence.Record {
	store := w.store(a.Table)
	if store == nil {
		return nil
	}
	record := &sequence.Record{ID: a.Record, Title: w.titleOf(x)}
	if w.isInner(x, a.Record) {
		record.Title = "a call inside " + record.Title
	}
	seen, err := store.Inspect(w.ctx, a.Record)
	if err != nil {
		record.State, record.Fields = "unreadable", []sequence.Field{{Name: "error", Value: err.Error()}}
		return record
	}
	if seen.Record.Token != a.Token {
		return nil
	}
	w.expect(store, seen, record.Title)
	w.noticePolicy(x, seen.Record)
	record.State, record.Fields = stateOf(seen), w.fieldsOf(store, seen)
	return record
}

// noticePolicy notes whether the record of an exchange waits for an operator if its attempt dies.
func (w *Window) noticePolicy(x *exchange, record lambdaidem.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.record == record.ID {
		x.seen.held = record.Held()
	}
}

// isInner reports whether a record is that of a guarded call inside the handler.
func (w *Window) isInner(x *exchange, record string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return x.record != "" && x.record != record
}

// store returns a store that reads the records of a table, or nil before Serve.
func (w *Window) store(name string) *dynamostore.Store {
	w.mu.Lock()
	s, names := w.stack, w.attributes[name]
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	return dynamostore.New(s.Database().Client(), name, func(o *dynamostore.Options) {
		names.setOptions(o)
		for _, table := range s.Template().Tables {
			if table.Name != name {
				continue
			}
			o.IDAttribute = table.Key[0].Name
			if len(table.Key) > 1 {
				o.SortKeyAttribute = table.Key[1].Name
			}
		}
	})
}

// stateOf returns the state of a record, in the words of the operator's command.
func stateOf(seen dynamostore.Inspected) sequence.State {
	rec := seen.Record
	switch {
	case rec.GoneAt(seen.At()):
		return sequence.Deleted
	case rec.State == lambdaidem.Completed && rec.Result.Outcome == lambdaidem.OutcomeFailed:
		return "failed"
	case rec.State == lambdaidem.Completed:
		return sequence.Completed
	case rec.State == lambdaidem.Released:
		return sequence.Released
	case time.Now().Before(rec.LeaseEnd):
		return sequence.InProgress
	case rec.Held():
		return sequence.Held
	}
	return "dead"
}

// inDiagram returns a time as the clock shows it, and as the first column of the diagram does.
func (w *Window) inDiagram(t time.Time) string {
	clock := t.Local().Format("15:04:05.000 MST")
	if at, ok := w.history.since(t); ok {
		return fmt.Sprintf("%s, at %.3f s of the diagram", clock, at.Seconds())
	}
	return clock
}

// fieldsOf returns what a record says, decoded.
func (w *Window) fieldsOf(store *dynamostore.Store, seen dynamostore.Inspected) []sequence.Field {
	rec := seen.Record
	var fields []sequence.Field
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, sequence.Field{Name: name, Value: clip(value)})
		}
	}
	add("scope", rec.Scope)
	add("attempt", fmt.Sprint(rec.Attempt))
	if !rec.LeaseEnd.IsZero() {
		add("lease ends", w.inDiagram(rec.LeaseEnd))
	}
	add("token", rec.Token)
	add("fingerprint", rec.Fingerprint)
	add("last failure", rec.LastFailure)
	for _, name := range slices.Sorted(maps.Keys(rec.Steps)) {
		add("step "+name, string(rec.Steps[name]))
	}
	if rec.State == lambdaidem.Completed {
		add("outcome", string(rec.Result.Outcome))
		add("answer", answerOf(w.ctx, store, rec))
	}
	if !rec.Expires.IsZero() {
		add("expires", rec.Expires.Local().Format("2006-01-02 15:04:05 MST"))
	}
	add("id", rec.ID)
	return fields
}

// answerOf returns the stored answer as people read it.
func answerOf(ctx context.Context, store *dynamostore.Store, rec lambdaidem.Record) string {
	result, err := store.Load(ctx, rec)
	if err != nil {
		return "can't be read: " + err.Error()
	}
	if f := result.Failure; f != nil {
		return fmt.Sprintf("failure %s: %s", f.Code, f.Message)
	}
	scope, err := lambdaidem.ParseScope(rec.Scope)
	if err != nil || scope.Kind() != lambdaidem.RecordHTTP {
		return string(result.Value)
	}
	answer, err := lambdaidem.DecodeAnswer(result.Value)
	if err != nil {
		return "can't be read: " + err.Error()
	}
	body := answer.Body
	if !json.Valid([]byte(body)) && strings.ContainsRune(body, '\uFFFD') {
		body = fmt.Sprintf("%d bytes", len(body))
	}
	return fmt.Sprintf("%d %s", answer.Status, body)
}
