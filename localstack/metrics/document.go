package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Datum is what a document says of one metric, under one set of dimensions.
type Datum struct {
	Namespace  string
	Name       string
	Unit       string            // "None" where the document gives none
	Dimensions map[string]string // by their names; empty: the metric has none
	Values     []float64         // never empty
	Time       time.Time
}

// Document is a line in the embedded metric format.
type Document struct {
	// Data are those of each directive, of each of its metrics, under each set of
	// dimensions, in the document's order.
	Data []Datum
	// Members are those that are neither metadata nor a metric's value: dimensions, and
	// what else the document has for readers of the log.
	Members map[string]json.RawMessage
}

// ErrNoDocument says that a line is no document, and does not mean to be one.
var ErrNoDocument = errors.New("it has no metadata of the embedded metric format")

// Parse reads one line, with or without its end. The error is [ErrNoDocument] for a
// line that has nothing to do with metrics; any other says why CloudWatch would make
// no metric of the line, though it is meant to be a document.
func Parse(line []byte) (Document, error) {
	var root object
	if !bytes.Contains(line, []byte(`"_aws"`)) || json.Unmarshal(line, &root) != nil {
		return Document{}, ErrNoDocument
	}
	var meta object
	if json.Unmarshal(root["_aws"], &meta) != nil || meta["CloudWatchMetrics"] == nil {
		return Document{}, ErrNoDocument // others may have a use for _aws
	}
	var ms *int64
	if err := meta.get("Timestamp", &ms); err != nil || ms == nil {
		return Document{}, fmt.Errorf("the Timestamp is %s; it has to be in whole milliseconds since 1970", meta["Timestamp"])
	}
	var directives []object
	if err := meta.get("CloudWatchMetrics", &directives); err != nil {
		return Document{}, err
	}
	doc := Document{Members: maps.Clone(root)}
	delete(doc.Members, "_aws")
	for _, o := range directives {
		d, err := directiveOf(o)
		if err == nil {
			err = d.read(root, time.UnixMilli(*ms), &doc)
		}
		if err != nil {
			return Document{}, err
		}
	}
	return doc, nil
}

// object is a JSON object. Its members' names count by their case, which they would
// not in a Go struct.
type object map[string]json.RawMessage

// get reads a member, and nothing if it is not there.
func (o object) get(name string, v any) error {
	raw, there := o[name]
	if !there {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
