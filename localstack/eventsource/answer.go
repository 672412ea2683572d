package eventsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// reported parses the response of a function whose mapping has ReportBatchItemFailures. It
// returns the indexes in ids of the records that the response reports as failed, in ascending
// order. It returns an error if the response is invalid; the whole batch has then failed.
//
// The rules are those of "Handling errors for an SQS event source in Lambda" and "Configuring
// partial batch response with DynamoDB and Lambda". A response that is empty or null, or whose
// batchItemFailures is missing, empty or null, means that all records succeeded. A response is
// invalid if it is not a JSON object, if an itemIdentifier is missing, empty or null, or if no
// record in the batch has the identifier.
func reported(answer []byte, ids []string) ([]int, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return nil, nil
	}
	// Decode into maps, because Lambda matches names exactly: decoding into a struct would also
	// accept ITEMIDENTIFIER for itemIdentifier.
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
			places = append(places, i) // several records may have the same ID; all of them have failed
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

// listsFailures reports whether a function's response is a JSON object with a batchItemFailures
// that is neither null nor an empty list. The entries need not be valid.
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
