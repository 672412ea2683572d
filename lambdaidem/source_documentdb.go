package lambdaidem

import (
	"context"
	"encoding/json"
)

// DocumentDB guards a handler of the changes in an Amazon DocumentDB change stream. If a change
// fails, the returned function returns an error, which is a *[BatchError] if the event has several
// changes. Lambda then delivers the whole batch again, until it succeeds or the stream drops the
// changes (Amazon DocumentDB, "Using AWS Lambda with change streams"). The handler does not run
// again for changes that it has handled.
//
// Changes of the same document keep their order: after one of them has failed, the handler does not
// run for later changes of that document. If another invocation is still handling a change, the
// batch waits for that invocation; see [Guard.Kinesis].
//
// The default key is the change's _id, the resume token of the stream. The fingerprint of an update
// covers UpdateDescription but not FullDocument, which may differ when the stream is read again.
// The default BatchOptions.Operation is "documentdb:CLUSTER|DATABASE|COLLECTION", where CLUSTER is
// the ARN of the cluster.
func (g *Guard) DocumentDB(h func(context.Context, DocumentDBChange) error, optFns ...func(*BatchOptions[DocumentDBChange])) func(context.Context, DocumentDBEvent) error {
	return wholeEvent(guardMessages(g, source[DocumentDBEvent, DocumentDBChange]{
		list:           documentDBChanges,
		convert:        documentDBMessage,
		limitedRetries: true,
	}, h, optFns))
}

// DocumentDBEvent is an event with changes from an Amazon DocumentDB change stream.
type DocumentDBEvent struct {
	EventSource    string `json:"eventSource"`
	EventSourceARN string `json:"eventSourceArn"`
	Events         []struct {
		Event DocumentDBChange `json:"event"`
	} `json:"events"`
}

// DocumentDBChange is a change of a document. Documents and their parts are MongoDB Extended JSON
// (MongoDB, "Change Events").
type DocumentDBChange struct {
	ID struct {
		Data string `json:"_data"`
	} `json:"_id"` // the resume token
	OperationType string `json:"operationType"` // such as "insert", "update" or "delete"
	Namespace     struct {
		Database   string `json:"db"`
		Collection string `json:"coll"`
	} `json:"ns"`
	DocumentKey       json.RawMessage `json:"documentKey,omitempty"`
	FullDocument      json.RawMessage `json:"fullDocument,omitempty"`      // missing for some changes; see the mapping's FullDocument
	UpdateDescription json.RawMessage `json:"updateDescription,omitempty"` // the changed and removed fields of an update
	ClusterTime       json.RawMessage `json:"clusterTime,omitempty"`
}

func documentDBChanges(e DocumentDBEvent) []DocumentDBChange {
	var all []DocumentDBChange
	for _, each := range e.Events {
		all = append(all, each.Event)
	}
	return all
}

func documentDBMessage(e DocumentDBEvent, c DocumentDBChange) message {
	document, description := c.FullDocument, c.UpdateDescription
	if c.OperationType == "update" {
		// With UpdateLookup, FullDocument is the document at the time of the look-up (MongoDB,
		// "Change Events").
		document = nil // FullDocument may differ when the change is read again
		if len(description) == 0 || string(description) == "null" {
			description = json.RawMessage(jsonText(c.ID.Data))
		}
	}
	m := message{name: c.ID.Data, id: c.ID.Data, group: PrincipalOf("document", c.Namespace.Database, c.Namespace.Collection, string(c.DocumentKey)),
		body:  []byte(jsonText([]json.RawMessage{c.DocumentKey, document, description})),
		parts: []string{c.OperationType, c.Namespace.Database, c.Namespace.Collection}}
	if e.EventSourceARN != "" {
		m.source = PrincipalOf("documentdb", e.EventSourceARN, c.Namespace.Database, c.Namespace.Collection)
	}
	return m
}
