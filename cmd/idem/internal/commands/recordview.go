package commands

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// recordView is a record as --output json prints it.
type recordView struct {
	ID           string                     `json:"id"`
	State        string                     `json:"state"`           // in progress, dead, held, completed, failed, released or expired
	Lease        string                     `json:"lease,omitempty"` // live or over; empty unless the record is in progress
	Token        string                     `json:"token"`
	Attempt      int                        `json:"attempt"`
	Invocation   string                     `json:"invocation,omitempty"`  // the Lambda request id of the attempt
	LastFailure  string                     `json:"lastFailure,omitempty"` // why the attempt was released
	Bound        string                     `json:"bound,omitempty"`       // why a released record refuses another payload; see lambdaidem.Record.Bound
	Kind         lambdaidem.RecordKind      `json:"kind,omitempty"`
	Scope        string                     `json:"scope"`
	Fingerprint  string                     `json:"fingerprint,omitempty"`
	StartedAt    *time.Time                 `json:"startedAt,omitempty"`
	LeaseEnd     *time.Time                 `json:"leaseEnd,omitempty"`
	CompletedAt  *time.Time                 `json:"completedAt,omitempty"`
	Expires      *time.Time                 `json:"expires,omitempty"`
	DatabaseTime time.Time                  `json:"databaseTime"`
	Steps        map[string]json.RawMessage `json:"steps,omitempty"`
	StepsUnread  string                     `json:"stepsUnread,omitempty"` // why the steps can't be decrypted; each is then null
	Answer       *answerView                `json:"answer,omitempty"`
	Operations   []operationView            `json:"operations,omitempty"`
	Downstream   []downstreamView           `json:"downstreamKeys,omitempty"` // the keys for the names of --downstream

	parts         lambdaidem.RecordScope
	downstreamKey func(name string) string
}

type operationView struct {
	What    dynamostore.OperationKind `json:"what"`
	By      string                    `json:"by"`
	Reason  string                    `json:"reason"`
	At      time.Time                 `json:"at"`
	Attempt int                       `json:"attempt"`
	Token   string                    `json:"token"` // the record's token after the operation
	Forced  bool                      `json:"forced,omitempty"`
}

type downstreamView struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// viewOf returns the view of a record, without its answer.
func viewOf(seen dynamostore.Inspected) recordView {
	rec, now := seen.Record, seen.At()
	v := recordView{
		ID: rec.ID, State: stateOf(rec, now), Token: rec.Token, Attempt: rec.Attempt, Scope: rec.Scope, Fingerprint: rec.Fingerprint,
		StartedAt: moment(rec.StartedAt), LeaseEnd: moment(rec.LeaseEnd), CompletedAt: moment(rec.CompletedAt), Expires: moment(rec.Expires),
		DatabaseTime: seen.Now, Invocation: rec.Invocation, LastFailure: rec.LastFailure, downstreamKey: rec.DownstreamKey,
	}
	if v.State == "released" {
		v.Bound = rec.Bound
	}
	if rec.State == lambdaidem.InProgress {
		if v.Lease = "over"; rec.LeaseLiveAt(now) {
			v.Lease = "live"
		}
	}
	if parts, err := lambdaidem.ParseScope(rec.Scope); err == nil {
		v.parts, v.Kind = parts, parts.Kind()
	}
	for name, result := range rec.Steps {
		if v.Steps == nil {
			v.Steps = map[string]json.RawMessage{}
		}
		v.Steps[name] = asJSON(result)
		if seen.StepsUnread != nil {
			v.Steps[name], v.StepsUnread = json.RawMessage("null"), seen.StepsUnread.Error()
		}
	}
	for _, o := range seen.Operations {
		v.Operations = append(v.Operations, operationView(o))
	}
	return v
}

// withAnswer returns the view with the answer of a completed record, which it loads.
func (v recordView) withAnswer(ctx context.Context, s *dynamostore.Store, rec lambdaidem.Record) recordView {
	if rec.State != lambdaidem.Completed {
		return v
	}
	result, err := s.Load(ctx, rec)
	if err != nil {
		v.Answer = &answerView{Unreadable: err.Error()}
		return v
	}
	v.Answer = answerOf(v.Kind, result)
	return v
}

// asJSON returns b if it is valid JSON, and otherwise a JSON string with the bytes of b.
func asJSON(b []byte) json.RawMessage {
	if json.Valid(b) {
		return b
	}
	text, err := json.Marshal(string(b))
	if err != nil { // can't happen: a string always has a JSON form
		panic(err)
	}
	return text
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text prints the record as a table.
func (v recordView) text(to printer) error {
	w := newTable(to)
	w.row("record", "%s", v.ID)
	w.row("state", "%s", v.says())
	w.row("kind", "%s", v.Kind)
	if v.parts.Route != "" {
		w.row("namespace", "%s", clip(unescaped(v.parts.Namespace)))
		w.row("route", "%s", clip(printedRoute(v.parts)))
		w.row("caller", "%s", clip(orNobody(unescaped(v.parts.Principal))))
		if v.parts.Tenant != "" {
			w.row("tenant", "%s", clip(unescaped(v.parts.Tenant)))
		}
	} else {
		w.row("scope", "%s", v.Scope)
	}
	w.row("token", "%s", v.Token)
	w.row("attempt", "%d", v.Attempt)
	if v.Invocation != "" {
		w.row("invocation", "%s", clip(v.Invocation))
	}
	if v.LastFailure != "" {
		w.row("last failure", "%s", clip(v.LastFailure))
	}
	if v.Bound != "" {
		w.row("bound", "%s", boundTo(v.Bound))
	}
	for _, m := range []struct {
		name string
		at   *time.Time
	}{{"began", v.StartedAt}, {"lease ends", v.LeaseEnd}, {"completed", v.CompletedAt}, {"expires", v.Expires}} {
		if m.at != nil && (m.name != "lease ends" || v.Lease != "") {
			w.row(m.name, "%s, %s", m.at.Format(time.RFC3339), relative(m.at.Sub(v.DatabaseTime)))
		}
	}
	w.row("fingerprint", "%s", v.Fingerprint)
	for _, name := range slices.Sorted(maps.Keys(v.Steps)) {
		w.row("step", "%s: %s", name, clip(string(v.Steps[name])))
	}
	if v.StepsUnread != "" {
		w.row("steps unread", "%s", clip(v.StepsUnread))
	}
	for _, k := range v.Downstream {
		w.row("downstream", "%s: %s", clip(k.Name), k.Key)
	}
	for _, o := range v.Operations {
		forced := ""
		if o.Forced {
			forced = ", by force"
		}
		w.row("operator", "%s %s attempt %d at %s%s: %s", clip(o.By), o.What, o.Attempt, o.At.Format(time.RFC3339), forced, clip(o.Reason))
	}
	if v.Answer != nil {
		v.Answer.rows(w)
	}
	return w.flush()
}

func orNobody(caller string) string {
	if caller == "" {
		return "(none)"
	}
	return caller
}

// printRecord prints a record in the format of --output.
func (a *app) printRecord(v recordView) error {
	if a.output == outputJSON {
		return printJSON(a.Out, v, true)
	}
	return v.text(a.Out)
}
