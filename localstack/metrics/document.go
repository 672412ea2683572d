package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Datum has the values of one metric in a document, for one set of dimensions.
type Datum struct {
	Namespace  string
	Name       string
	Unit       string            // "None" if the document gives no unit
	Dimensions map[string]string // values by name; empty if the metric has no dimensions
	Values     []float64         // never empty
	Time       time.Time
}

// Document is a line in the embedded metric format.
type Document struct {
	// Data has one element for each directive, each of its metrics and each of its sets of
	// dimensions, in the document's order.
	Data []Datum
	// Members are the other members of the document: dimensions, and fields for readers of the
	// log. It has neither metadata nor values of metrics.
	Members map[string]json.RawMessage
}

// ErrNoDocument means that a line is not a document and is not meant to be one.
var ErrNoDocument = errors.New("it has no metadata of the embedded metric format")

// Parse reads one line, with or without the line ending. It returns [ErrNoDocument] if the line
// has no metadata of the format. Any other error says why CloudWatch would extract no metrics
// from the document.
func Parse(line []byte) (Document, error) {
	var root object
	if !bytes.Contains(line, []byte(`"_aws"`)) || json.Unmarshal(line, &root) != nil {
		return Document{}, ErrNoDocument
	}
	var meta object
	if json.Unmarshal(root["_aws"], &meta) != nil || meta["CloudWatchMetrics"] == nil {
		return Document{}, ErrNoDocument // other programs may use the name _aws
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

// object is a JSON object. It is a map because CloudWatch matches names exactly, whereas decoding
// into a struct ignores case.
type object map[string]json.RawMessage

// get decodes a member into v. If there is no such member, get leaves v unchanged and returns
// nil.
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
