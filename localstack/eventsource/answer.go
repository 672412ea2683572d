package eventsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// reported reads a function's answer to a batch whose mapping has
// ReportBatchItemFailures, and returns the places of the records that it names, in
// their order. The error says why the answer is none, which fails the whole batch.
//
// By "Handling errors for an SQS event source in Lambda" and "Configuring partial batch
// response with DynamoDB and Lambda" an empty or null answer, and an empty or null
// list, are a success; an answer that is not valid, an identifier that is empty, null
// or under another name, and one that no record has, are a failure.
func reported(answer []byte, ids []string) ([]int, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return nil, nil
	}
	// By exact names: package json takes ITEMIDENTIFIER for itemIdentifier, Lambda
	// does not.
	var response map[string]json.RawMessage
	if err := json.Unmarshal(answer, &response); err != nil {
		return nil, fmt.Errorf("the answer is not an object: %w", err)
	}
	var items []map[string]json.RawMessage
	if list := response["batchItemFailures"]; list != nil {
		if err := json.Unmarshal(list, &items); err != nil {
			return nil, fmt.Errorf("batchItemFailures is not a list of objects: %w", err)
		}
	}
	named := map[string]bool{}
	for _, item := range items {
		var id *string
		if err := json.Unmarshal(item["itemIdentifier"], &id); err != nil || id == nil || *id == "" {
			return nil, errors.New("an entry of batchItemFailures has no itemIdentifier")
		}
		named[*id] = true
	}
	var places []int
	known := map[string]bool{}
	for i, id := range ids {
		if named[id] {
			places = append(places, i) // each, if several records have the id
			known[id] = true
		}
	}
	for id := range named {
		if !known[id] {
			return nil, fmt.Errorf("itemIdentifier %q is of no record in the batch", id)
		}
	}
	return places, nil
}

// listsFailures reports whether an answer has a batchItemFailures that is neither null
// nor an empty list, whether or not Lambda could read its entries.
func listsFailures(answer []byte) bool {
	var response map[string]json.RawMessage
	if err := json.Unmarshal(answer, &response); err != nil {
		return false
	}
	list := response["batchItemFailures"]
	if list == nil {
		return false
	}
	var items []json.RawMessage
	err := json.Unmarshal(list, &items)
	return err != nil || len(items) > 0
}
