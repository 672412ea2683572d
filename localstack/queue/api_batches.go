package queue

import (
	"errors"
	"strings"
)

// maxBatch is the most entries of a batch.
const maxBatch = 10

type batchError struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string
}

// failed is a refusal as a batch reports it, by its old code.
func failed(id string, err error) batchError {
	refusal := asRefusal(err)
	return batchError{ID: id, SenderFault: refusal.Status < 500, Code: refusal.QueryCode, Message: refusal.Message}
}

type batchEntry struct {
	ID string `json:"Id"`
}

// batchResponse is of every batch; Successful of one that has nothing to say is
// the ids.
type batchResponse[T any] struct {
	Successful []T          `json:",omitempty"`
	Failed     []batchError `json:",omitempty"`
}

// checkBatch holds what every batch must be, before any entry is looked at.
func checkBatch(action string, ids []string) error {
	if len(ids) == 0 {
		return emptyBatchRequest.error("There should be at least one %sBatchRequestEntry in the request.", action)
	}
	if len(ids) > maxBatch {
		return tooManyEntries.error("Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(ids))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if id == "" || len(id) > 80 || strings.ContainsFunc(id, func(r rune) bool { return !isWord(r) }) {
			return invalidBatchEntryID.error("A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id] {
			return batchEntryIDsNotDistinct.error("Id %s repeated.", id)
		}
		seen[id] = true
	}
	return nil
}

func ids[E any](entries []E, id func(E) string) []string {
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = id(e)
	}
	return list
}

type sendMessageBatchRequest struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []sendMessageBatchEntry
}

type sendMessageBatchEntry struct {
	batchEntry
	sendParameters
}

func (c *call) sendMessageBatch(in *sendMessageBatchRequest) (*batchResponse[sendMessageResponse], error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("SendMessage", ids(in.Entries, func(e sendMessageBatchEntry) string { return e.ID })); err != nil {
		return nil, err
	}
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock() // nothing comes between the messages of a batch
	outgoing := make([]Outgoing, len(in.Entries))
	refusals := make([]error, len(in.Entries))
	total := 0
	for i, e := range in.Entries {
		outgoing[i], refusals[i] = e.outgoing()
		total += outgoing[i].size()
		if err := q.checkFIFO(outgoing[i]); err != nil {
			return nil, invalidParameterValue.error("%s", err.Message) // also for a missing parameter
		}
	}
	if total > maxMessageBytes {
		return nil, batchRequestTooLong.error("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageBytes, total)
	}
	out := &batchResponse[sendMessageResponse]{}
	for i, e := range in.Entries {
		var sent Sent
		err := refusals[i]
		if err == nil {
			sent, err = q.send(outgoing[i])
		}
		if err != nil {
			out.Failed = append(out.Failed, failed(e.ID, err))
			continue
		}
		out.Successful = append(out.Successful, sent.response(e.ID))
	}
	return out, nil
}

type deleteMessageBatchRequest struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []deleteMessageBatchEntry
}

type deleteMessageBatchEntry struct {
	batchEntry
	ReceiptHandle string
}

func (c *call) deleteMessageBatch(in *deleteMessageBatchRequest) (*batchResponse[batchEntry], error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("DeleteMessage", ids(in.Entries, func(e deleteMessageBatchEntry) string { return e.ID })); err != nil {
		return nil, err
	}
	out := &batchResponse[batchEntry]{}
	for _, e := range in.Entries {
		out.add(e.batchEntry, inBatch(q.Delete(e.ReceiptHandle), reasonExpired))
	}
	return out, nil
}

type changeMessageVisibilityBatchRequest struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []changeMessageVisibilityBatchEntry
}

type changeMessageVisibilityBatchEntry struct {
	batchEntry
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (c *call) changeMessageVisibilityBatch(in *changeMessageVisibilityBatchRequest) (*batchResponse[batchEntry], error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("ChangeMessageVisibility", ids(in.Entries, func(e changeMessageVisibilityBatchEntry) string { return e.ID })); err != nil {
		return nil, err
	}
	out := &batchResponse[batchEntry]{}
	for _, e := range in.Entries {
		timeout := 0 // "Required: No", in a batch
		if e.VisibilityTimeout != nil {
			timeout = *e.VisibilityTimeout
		}
		out.add(e.batchEntry, q.ChangeVisibility(e.ReceiptHandle, *seconds(&timeout)))
	}
	return out, nil
}

func (b *batchResponse[T]) add(entry T, err error) {
	if err == nil {
		b.Successful = append(b.Successful, entry)
		return
	}
	e, _ := any(entry).(batchEntry)
	b.Failed = append(b.Failed, failed(e.ID, err))
}

// inBatch gives an expired receipt handle the code that it has in batches.
func inBatch(err error, reason string) error {
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Code == invalidParameterValue.code && strings.HasSuffix(refusal.Message, reason) {
		return receiptHandleIsInvalid.error("%s", strings.TrimSuffix(reason, "."))
	}
	return err
}
