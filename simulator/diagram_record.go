package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/internal/sequence"
)

// record returns the record as it is after a write, or nil if there was no write.
func (d *drawing) record(write *memdynamo.Write) *sequence.Record {
	if write == nil {
		return nil
	}
	id := write.Key["id"].Text
	r := &sequence.Record{ID: write.Table + " " + id, Title: "inner call", State: drawnState(write)}
	if h := d.w.journal.records[id]; h != nil {
		r.Title = h.order.record()
	}
	for _, name := range fieldsOf(write.After) {
		r.Fields = append(r.Fields, sequence.Field{Name: name, Value: d.value(name, write.After[name])})
	}
	return r
}

// drawnState returns the state of the record after a write.
func drawnState(w *memdynamo.Write) sequence.State {
	switch s := stateOf(w.After); {
	case w.After == nil:
		return sequence.Deleted
	case s == completed:
		return sequence.Completed
	case s == released:
		return sequence.Released
	case changeOf(*w, nil).holds:
		return sequence.Held
	default:
		return sequence.InProgress
	}
}

// firstFields are the attributes that are shown first.
var firstFields = []string{"status", "attempt", "token", "in_progress_expiration", "expiration", "data"}

// fieldsOf returns the names of an item's attributes, in the order in which they are shown.
func fieldsOf(item memdynamo.Item) []string {
	var names []string
	for _, name := range firstFields {
		if _, ok := item[name]; ok {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if !slices.Contains(firstFields, name) {
			names = append(names, name)
		}
	}
	return names
}

// value returns an attribute's value as text. For a time, the text also has the time since the run
// began.
func (d *drawing) value(name string, v memdynamo.Value) string {
	switch name {
	case "in_progress_expiration", "started_at", "completed_at":
		return fmt.Sprintf("%s (%v after the beginning)", v.Text, millis(v).Sub(d.w.born))
	case "expiration":
		return fmt.Sprintf("%s (the record expires %v after the beginning)", v.Text, expiry(memdynamo.Item{name: v}).Sub(d.w.born))
	}
	return plainText(v)
}

// plainText returns a value as text, without the names of the types. It shortens long texts.
func plainText(v memdynamo.Value) string {
	switch v.Type {
	case memdynamo.TypeMap:
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(v.Map)) {
			fields = append(fields, name+": "+plainText(v.Map[name]))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case memdynamo.TypeList:
		var elements []string
		for _, e := range v.List {
			elements = append(elements, plainText(e))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case memdynamo.TypeBinary:
		return fmt.Sprintf("%d bytes", len(v.Text))
	case memdynamo.TypeBool:
		return fmt.Sprint(v.Bool)
	}
	const most = 300
	if len(v.Text) > most {
		return strings.ToValidUTF8(v.Text[:most], "") + "…"
	}
	return v.Text
}
