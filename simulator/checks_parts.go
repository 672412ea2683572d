package simulator

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// part checks a part that is written.
func (j *judge) part(a *actor, w memdynamo.Write) {
	if w.Before != nil && !bytes.Equal([]byte(w.Before["data"].Text), []byte(w.After["data"].Text)) {
		j.brokenLocked(a, CheckWhole, "a part was overwritten by other bytes")
	}
	if h := j.b.historyOf(a.order); h != nil && h.id != w.After["part"].Map["record"].Text {
		j.brokenLocked(a, CheckOwnRecord, "wrote a part of another's record")
	}
}

// partOf checks a part of a completed record. ok is false if the part doesn't exist.
func (j *judge) partOf(a *actor, record, part memdynamo.Item, ok bool) {
	if !ok {
		j.brokenLocked(a, CheckWhole, "the record is completed, and a part of its answer is not there")
		return
	}
	if part["part"].Map["token"].Text != record["token"].Text {
		j.brokenLocked(a, CheckWhole, "a part of the answer is of another attempt")
	}
	if outlives := number(part["expiration"]) - number(record["expiration"]); outlives < int64(time.Hour/time.Second) {
		j.brokenLocked(a, CheckPartOutlives, "a part expires %d s after its record", outlives)
	}
}

// partGone checks a part that is deleted while its record exists.
func (j *judge) partGone(w memdynamo.Write, l *life) {
	if w.Op == "TTL" && !deletable(l.completed, time.Now()) {
		j.brokenLocked(nil, CheckPartOutlives, "TTL deletes a part, and its record stands")
	}
}

// readable checks the error from reading a completed record's answer.
func (j *judge) readable(a *actor, err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		j.brokenLocked(a, CheckWhole, "the stored answer can't be read: %v", err)
	}
}
