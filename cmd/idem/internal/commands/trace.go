package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// link is the value of one --then: it leads from a record to the next one in the chain.
type link struct {
	from string                // where the next record's key is: key, downstream:NAME, answer:/POINTER or step:NAME/POINTER
	may  []lambdaidem.Identity // the identities that the next record may have, without its key
}

// hop is one record of a chain, as --output json prints it.
type hop struct {
	From   string      `json:"from,omitempty"` // where the key came from; empty for the first record
	Key    string      `json:"key,omitempty"`
	ID     string      `json:"id,omitempty"`
	Record *recordView `json:"record"`            // null if there is no record, or if it has expired
	Unread string      `json:"unknown,omitempty"` // why the key is unknown and the chain ends here; "" if it is known

	// Prefixes are the ID prefixes with which trace looked for a record that it did not find. ""
	// stands for an id without a prefix.
	Prefixes []string `json:"idPrefixes,omitempty"`
}

func newTrace(a *app) *cobra.Command {
	var (
		who        identity
		then       []string
		downstream []string
	)
	c := &cobra.Command{
		Use:   "trace [ID]",
		Short: "Follow a chain: a record, and those of the messages and stream records that it led to",
		Long: `Follow a chain of records. Identify the first record as for show. Each --then identifies
the next one: where its key is, and its scope, as records and logs have it. Leave out the
caller of the scope if there is none.

  downstream:NAME => SCOPE   the key that the handler passed on under this name
  answer:/POINTER => SCOPE   a member of the answer, by its JSON Pointer
  step:NAME/POINTER => SCOPE a member of a stored step's result
  key => SCOPE               the same key, if the record before was found by its key

trace reads a few items for each record, and scans nothing. It looks for a record with the ID
prefix of the first record (Options.IDPrefix), and without a prefix. If it finds none, the
operation has not begun, the record has expired, the call ran unguarded (the log has a line
"failed_open" or "switched_off"), or the guard has another ID prefix: then use idem show with
--id-prefix. The chain ends where the next key is unknown.`,
		Example: `  idem trace lambdaidem#yVLK2aFQkF3… --then 'answer:/id => receipts message receipt' --then 'key => notifications message notification'
  idem trace lambdaidem#yVLK2aFQkF3… --then 'downstream:mail => mails message mail'`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			links := make([]link, len(then))
			for i, text := range then {
				var err error
				if links[i], err = parseLink(text); err != nil {
					return usage(fmt.Errorf("--then %q: %w", text, err))
				}
			}
			s, _, err := a.store(c.Context())
			if err != nil {
				return err
			}
			first, key, err := a.find(c, s, &who, args)
			if err != nil {
				return err
			}
			chain, err := follow(c.Context(), s, first, key, links, downstream)
			if err != nil {
				return err
			}
			if a.output == outputJSON {
				return printJSON(a.Out, chain, true)
			}
			return textOf(chain, a.Out)
		},
	}
	who.flags(c.Flags())
	c.Flags().StringArrayVar(&then, "then", nil, "the next record: where its key is, =>, and its scope; may be repeated")
	c.Flags().StringArrayVar(&downstream, "downstream", nil, "also show the key that each handler passed on under this name; may be repeated")
	return c
}

// follow reads the records of a chain, one after the other. seen is the first record, and key is
// its key, or "" if the key is unknown. names are the values of --downstream. Each guard of the
// chain must have the Options.IDPrefix of the guard that made the first record, or none, as a
// consumer of a queue that all tenants share. If the key of a record can't be found, the chain ends
// with a hop that says why.
func follow(ctx context.Context, s *dynamostore.Store, seen dynamostore.Inspected, key string, links []link, names []string) ([]hop, error) {
	chain := []hop{hopOf(ctx, s, hop{ID: seen.Record.ID, Key: key}, seen, names)}
	prefixes := slices.Compact([]string{lambdaidem.IDPrefixOf(seen.Record.ID), ""})
	for _, l := range links {
		last := &chain[len(chain)-1]
		next := hop{From: l.from}
		var err error
		if next.Key, err = l.key(last); err != nil {
			next.Unread = err.Error()
			return append(chain, next), nil //nolint:nilerr // the chain ends here, and says why
		}
		if seen, err = l.find(ctx, s, next.Key, prefixes); err != nil {
			return nil, err
		}
		next.ID = seen.Record.ID
		if next = hopOf(ctx, s, next, seen, names); next.Record == nil {
			next.Prefixes = prefixes
		}
		chain = append(chain, next)
	}
	return chain, nil
}

// find reads the record with the key. idPrefixes are the values that Options.IDPrefix may have in
// its guard. If there is no record, or only expired ones, find returns what it read first.
func (l *link) find(ctx context.Context, s *dynamostore.Store, key string, idPrefixes []string) (dynamostore.Inspected, error) {
	var first *dynamostore.Inspected
	for _, idPrefix := range idPrefixes {
		for _, who := range l.may {
			who.Key = key
			id, err := recordIDOf(s, who, idPrefix)
			if err != nil {
				return dynamostore.Inspected{}, err
			}
			seen, err := inspect(ctx, s, id)
			if err != nil {
				return seen, err
			}
			if !seen.Record.GoneAt(seen.At()) {
				return seen, nil
			}
			if first == nil {
				first = &seen
			}
		}
	}
	return *first, nil
}

// hopOf returns h with the record, unless there is none or it has expired. The record has
// its answer and the downstream keys for the given names and for the names of its steps.
func hopOf(ctx context.Context, s *dynamostore.Store, h hop, seen dynamostore.Inspected, names []string) hop {
	if seen.Record.GoneAt(seen.At()) {
		return h
	}
	v := viewOf(seen).withAnswer(ctx, s, seen.Record)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(names), maps.Keys(seen.Record.Steps))))) {
		v.Downstream = append(v.Downstream, downstreamView{name, seen.Record.DownstreamKey(name)})
	}
	h.Record = &v
	return h
}

// parseLink parses the value of --then.
func parseLink(text string) (link, error) {
	from, scope, ok := strings.Cut(text, "=>")
	l := link{from: strings.TrimSpace(from)}
	kind, rest, _ := strings.Cut(l.from, ":")
	switch {
	case !ok:
		return l, errors.New("it has no =>: 'downstream:NAME => SCOPE'")
	case l.from == "key", kind == "downstream" && rest != "", kind == "step" && rest != "", kind == "answer" && (rest == "" || rest[0] == '/'):
	default:
		return l, fmt.Errorf("%q is not key, downstream:NAME, answer:/POINTER or step:NAME/POINTER", l.from)
	}
	// In the scope of a call of Do, the method is empty, so two spaces follow the
	// namespace.
	scope = strings.TrimLeft(scope, " ")
	if strings.Count(strings.TrimRight(scope, " "), " ") == 2 { // the scope has no caller, so add an empty one
		scope = strings.TrimRight(scope, " ") + " "
	}
	parts, err := lambdaidem.ParseScope(scope)
	if err != nil {
		return l, fmt.Errorf("the scope must be as records and logs have it: 'NAMESPACE message OPERATION', 'NAMESPACE POST /route CALLER': %w", err)
	}
	l.may, err = parseScope(parts)
	return l, err
}

// key returns the key of the next record in the chain, which it finds in last.
func (l *link) key(last *hop) (string, error) {
	kind, rest, _ := strings.Cut(l.from, ":")
	rec := last.Record
	switch {
	case kind == "key" && last.Key == "":
		return "", errors.New("the key of the record before is not known: the table has no keys; ask for that record by --key")
	case kind == "key":
		return last.Key, nil
	case rec == nil:
		return "", errors.New("the record before is not there, so neither is what it passed on")
	case kind == "downstream":
		return rec.downstreamKey(rest), nil
	case kind == "step":
		name, pointer, _ := strings.Cut(rest, "/")
		result, ok := rec.Steps[name]
		switch {
		case !ok:
			return "", fmt.Errorf("the record before has no step %q: steps are kept until it is completed", name)
		case rec.StepsUnread != "":
			return "", fmt.Errorf("the steps of the record before can't be read: %s", rec.StepsUnread)
		}
		return member(result, strings.TrimPrefix(rest, name), pointer)
	}
	text := []byte(nil)
	if a := rec.Answer; a != nil && a.Unreadable == "" && !a.Base64 {
		text = []byte(a.Body)
		if len(a.Value) > 0 {
			text = a.Value
		}
	}
	if len(text) == 0 {
		return "", errors.New("the record before has no answer that can be read")
	}
	return member(text, rest, rest)
}

// member returns the string or the number at a JSON Pointer in text. shown is the pointer
// to print in errors.
func member(text []byte, pointer, shown string) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("look for %s: it is no JSON: %w", shown, err)
	}
	if pointer != "" {
		for _, token := range strings.Split(pointer, "/")[1:] {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			switch in := v.(type) {
			case map[string]any:
				v = in[token]
			case []any:
				i, err := strconv.Atoi(token)
				if err != nil || i < 0 || i >= len(in) {
					return "", fmt.Errorf("it has no %s", shown)
				}
				v = in[i]
			default:
				v = nil
			}
		}
	}
	switch v := v.(type) {
	case string:
		if v != "" {
			return v, nil
		}
	case json.Number:
		return v.String(), nil
	}
	return "", fmt.Errorf("it has no text and no number at %s", shown)
}

// absence says where trace looked for a record that it did not find, and what its absence can mean.
func (h *hop) absence() string {
	switch {
	case len(h.Prefixes) == 0:
		return "expired"
	case h.Prefixes[0] == "":
		return "none without an ID prefix: not begun, expired, or run unguarded"
	}
	return fmt.Sprintf("none with the ID prefix %s or without one: not begun, expired, or run unguarded", clip(h.Prefixes[0]))
}

// mayBeOfAnotherTenant reports whether a call of another tenant would have the same record, although
// the first record of the chain belongs to one tenant. A downstream key belongs to one record, but
// tenants may use the same key or have answers with the same member.
func (h *hop) mayBeOfAnotherTenant(first *hop) bool {
	return h.Record != nil && !strings.HasPrefix(h.From, "downstream:") && lambdaidem.IDPrefixOf(h.ID) != lambdaidem.IDPrefixOf(first.ID)
}

// textOf prints a chain as a table with a row for each record.
func textOf(chain []hop, to printer) error {
	w := newTable(to)
	say(w.printer, "KEY FROM\tKEY\tSTATE\tATTEMPT\tBEGAN\tINVOCATION\tLAST FAILURE\tROUTE\tRECORD\n")
	for _, h := range chain {
		from, key := h.From, clip(h.Key)
		if from == "" {
			from = "-"
		}
		if key == "" {
			key = "-"
		}
		switch v := h.Record; {
		case h.Unread != "":
			say(w.printer, "%s\tunknown: %s\n", from, clip(h.Unread))
		case v == nil:
			say(w.printer, "%s\t%s\t%s\t\t\t\t\t\t%s\n", from, key, h.absence(), h.ID)
		default:
			began := ""
			if v.StartedAt != nil {
				began = v.StartedAt.Format(time.RFC3339)
			}
			route := v.Scope
			if v.parts.Route != "" {
				route = printedRoute(v.parts)
			}
			say(w.printer, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", from, key, v.State, v.Attempt, began, v.Invocation, clip(v.LastFailure), clip(route), h.ID)
		}
	}
	for _, h := range chain {
		if h.Record == nil {
			continue
		}
		if h.mayBeOfAnotherTenant(&chain[0]) {
			say(w.printer, "%s has no ID prefix: a call of another tenant with this key has the same record\n", h.ID)
		}
		for _, k := range h.Record.Downstream {
			say(w.printer, "downstream %s: %s, of %s\n", clip(k.Name), k.Key, h.ID)
		}
	}
	return w.flush()
}
