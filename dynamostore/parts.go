package dynamostore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An answer that its record does not keep as it is (R3): compressed in it, or
// over several items beside it. Those are written before the completion that
// names them, and are found by nothing but it: until then they are orphans, and
// expire.

const (
	// partSize is how many bytes of an answer one part holds, but for the last.
	// An item may have 400 KB; smaller ones cost a unit more for each MB, and an
	// attempt on the wire that is lost or throttled costs less to send again.
	partSize = 256 << 10
	// partsAtOnce are written or read at the same time.
	partsAtOnce = 4
	// partOutlives is how much longer than its record's item a part is kept, so that
	// no clock and no long read finds a record whose parts are gone.
	partOutlives = time.Hour
	// encodedOverhead is how many bytes at most the attributes of a compressed
	// answer have that a plain one has not.
	encodedOverhead = 100
	// maxParts bounds what a damaged record can make this process read.
	maxParts = maxAnswerBound/partSize + 1 // one for what encryption adds
)

// attrPart is the attribute that distinguishes a part from a record. It is a map
// of the members below.
const attrPart = "part"

const (
	partRecord  = "record"  // S, the id of the record
	partToken   = "token"   // S, the fencing token of the attempt
	partScope   = "scope"   // S, the record's scope; absent if it is unknown
	partNumber  = "number"  // N, from 1
	partWritten = "written" // N, epoch milliseconds, by the clock of the attempt
)

// apart is lambdaidem.Result.Apart: how the answer is stored.
type apart struct {
	Encoding string
	Data     []byte // the stored bytes, if the record has them itself
	Parts    parts
}

// parts is what an item says of an answer with an encoding.
type parts struct {
	Count    int    // of the items that have the stored bytes; 0: data has them
	Length   int    // of the answer, bytes
	Checksum []byte // see checksum
	Failure  bool   // the answer is the JSON of a lambdaidem.Failure
}

// checksum binds an answer to its record, its attempt and its encoding: SHA-256
// over all of them. (It is as fast as CRC-64: 7 ms against 6 for 8 MB.)
func checksum(id, token, encoding string, answer []byte) []byte {
	h := sha256.New()
	for _, s := range []string{id, token, encoding} {
		var size [8]byte // so that no two of them can run into each other
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		_, _ = io.WriteString(h, s)
	}
	h.Write(answer)
	return h.Sum(nil)
}

// partID is the key of a part, numbered from 1. Through the checksum it is of
// one record, one attempt and one answer: no part is ever overwritten by other
// bytes, whichever writes arrive late or twice. It begins as the record's does,
// so that a policy for the records' keys holds for it too.
func partID(record string, sum []byte, number int) string {
	return record + "#" + strconv.Itoa(number) + "#" + base64.RawURLEncoding.EncodeToString(sum)
}

// packed is a result as its record is to keep it, and what must be written
// before.
type packed struct {
	result lambdaidem.Result // what item.finish takes
	stored []byte            // goes into parts; nil: there are none
}

// pack decides how an answer is stored, and writes nothing. The error is a
// StoreError: the answer is over Options.MaxAnswer, or there is no key for it.
func (s *Store) pack(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (packed, error) {
	o := &s.opts
	result.Apart = nil
	answer := result.Value
	if f := result.Failure; f != nil {
		if s.keys == nil && len(f.Code)+len(f.Type)+len(f.Message) <= o.MaxInline {
			return packed{result: result}, nil
		}
		var err error
		if answer, err = json.Marshal(f); err != nil { // texts and a number: can't happen
			panic(err)
		}
	}
	if len(answer) > o.MaxAnswer {
		return packed{}, &lambdaidem.StoreError{Op: opComplete, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
			Err: fmt.Errorf("the answer has %d bytes; Options.MaxAnswer is %d", len(answer), o.MaxAnswer)}
	}
	stored, encoding := answer, encodingPlain
	if len(answer) >= o.CompressFrom {
		// One KB less is one unit less, whatever else the item has.
		if c := compressed(answer); len(c)+encodedOverhead+bytesPerWrite <= len(answer) {
			stored, encoding = c, encodingGzip
		}
	}
	if s.keys == nil && encoding == encodingPlain && result.Failure == nil && len(answer) <= o.MaxInline {
		return packed{result: result}, nil
	}
	a := &apart{Encoding: encoding, Parts: parts{Length: len(answer), Failure: result.Failure != nil}}
	summed := answer
	if s.keys != nil {
		var err error
		if stored, err = s.sealAnswer(ctx, lease, a, stored); err != nil {
			return packed{}, err
		}
		summed = stored // of the answer itself it would tell who guesses right
	}
	a.Parts.Checksum = checksum(lease.ID, lease.Token, a.Encoding, summed)
	result.Value, result.Failure, result.Apart = nil, nil, a
	if len(stored) <= o.MaxInline {
		a.Data = stored
		return packed{result: result}, nil
	}
	a.Parts.Count = (len(stored) + partSize - 1) / partSize
	return packed{result: result, stored: stored}, nil
}

// prepare is everything before a completion: it packs the result and writes its
// parts, if it has any. What it returns is for item.finish. An error is a
// StoreError of a completion that was not sent; parts that were written all the
// same are no matter.
func (s *Store) prepare(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Result, error) {
	p, err := s.pack(ctx, lease, result)
	if err == nil {
		err = s.writeParts(ctx, lease, p)
	}
	return p.result, err
}

// writeParts writes a packed result's parts. That they are there is no harm if
// the completion fails, and they may be written twice.
func (s *Store) writeParts(ctx context.Context, lease lambdaidem.Lease, p packed) error {
	if p.stored == nil {
		return nil
	}
	a, _ := p.result.Apart.(*apart)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range a.Parts.Count {
		number, chunk := i+1, p.stored[i*partSize:min((i+1)*partSize, len(p.stored))]
		item := s.layout.part(lease, a.Parts.Checksum, number, chunk, p.result)
		group.Go(func() error {
			ctx, v := witnessed(ctx, opComplete)
			_, err := s.transport.send(ctx, &partRequest{s, item})
			if err == nil {
				return nil
			}
			v.ambiguous = false // X8: of the completion, which was not sent
			return v.storeError(fmt.Errorf("part %d of %d of the answer: %w", number, a.Parts.Count, err))
		})
	}
	return group.Wait() //nolint:wrapcheck // a StoreError
}

// part returns the item of part n of a result. It has no token attribute, so no
// attempt can lock it: see lockIsFree. If the record never expires, neither do its
// parts.
func (l *layout) part(lease lambdaidem.Lease, sum []byte, n int, data []byte, of lambdaidem.Result) attributes {
	origin := attributes{
		partRecord:  str(validUTF8(lease.ID)),
		partToken:   str(validUTF8(lease.Token)),
		partNumber:  number(int64(n)),
		partWritten: number(of.At.UnixMilli()),
	}
	if lease.Scope != "" {
		origin[partScope] = str(validUTF8(lease.Scope))
	}
	attrs := attributes{
		l.id():             str(partID(lease.ID, sum, n)),
		l.nameOf(attrData): &types.AttributeValueMemberB{Value: data},
		attrPart:           &types.AttributeValueMemberM{Value: origin},
	}
	if !of.Expires.IsZero() {
		attrs[l.nameOf(attrExpiration)] = number(deletionOf(of.Expires.Add(partOutlives)).n)
	}
	return attrs
}

// Load returns the answer of a completed record that is compressed or over
// several items; see [lambdaidem.Loader]. Items are read consistently.
func (s *Store) Load(ctx context.Context, record lambdaidem.Record) (lambdaidem.Result, error) {
	result := record.Result
	a, ok := result.Apart.(*apart)
	if !ok {
		return result, nil
	}
	stored := [][]byte{a.Data}
	var err error
	if a.Parts.Count > 0 {
		stored, err = s.readParts(ctx, record, a)
	}
	var answer []byte
	if err == nil {
		answer, err = s.open(ctx, record, a, stored)
	}
	result.Apart = nil
	switch {
	case err != nil:
	case a.Parts.Failure:
		result.Failure = &lambdaidem.Failure{}
		err = damaged(json.Unmarshal(answer, result.Failure))
	default:
		result.Value = answer
	}
	if err != nil {
		return lambdaidem.Result{}, s.unloaded(ctx, record, a, err)
	}
	return result, nil
}

// open makes the answer of the stored bytes, and verifies that it is the one
// that was completed. The error is a damagedAnswerError, or a keyError.
func (s *Store) open(ctx context.Context, record lambdaidem.Record, a *apart, stored [][]byte) (answer []byte, err error) {
	if err := s.mayBeOpen(a); err != nil {
		return nil, err
	}
	if a.sealed() {
		opened, err := s.openAnswer(ctx, record, a, joined(stored))
		if err != nil {
			return nil, err
		}
		stored = [][]byte{opened}
	}
	if a.zipped() {
		answer, err = decompressed(stored, a.Parts.Length)
	} else {
		answer = joined(stored)
	}
	switch {
	case err != nil:
		return nil, damaged(err)
	case len(answer) != a.Parts.Length:
		return nil, damaged(fmt.Errorf("it has %d bytes, and should have %d", len(answer), a.Parts.Length))
	case !a.sealed() && !bytes.Equal(checksum(record.ID, record.Token, a.Encoding, answer), a.Parts.Checksum):
		return nil, damaged(errors.New("its checksum is another"))
	}
	return answer, nil
}

// joined is the bytes in one; of one part, that part.
func joined(stored [][]byte) []byte {
	if len(stored) == 1 {
		return stored[0]
	}
	return slices.Concat(stored...)
}

// readParts reads an answer's items.
func (s *Store) readParts(ctx context.Context, record lambdaidem.Record, a *apart) ([][]byte, error) {
	stored := make([][]byte, a.Parts.Count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range stored {
		group.Go(func() (err error) {
			stored[i], err = s.readPart(ctx, record, a, i+1)
			return err
		})
	}
	return stored, group.Wait() //nolint:wrapcheck // our own
}

func (s *Store) readPart(ctx context.Context, record lambdaidem.Record, a *apart, number int) ([]byte, error) {
	part, err := s.read(ctx, partID(record.ID, a.Parts.Checksum, number), true)
	if err != nil {
		return nil, err
	}
	if part.none() {
		return nil, damaged(fmt.Errorf("part %d of %d is missing", number, a.Parts.Count))
	}
	data, ok := part.attrs[s.layout.nameOf(attrData)].(*types.AttributeValueMemberB)
	if !ok {
		return nil, damaged(fmt.Errorf("part %d of %d has no binary %s", number, a.Parts.Count, attrData))
	}
	return data.Value, nil
}

// read is one consistent GetItem. The error is a StoreError.
func (s *Store) read(ctx context.Context, id string, part bool) (found, error) {
	ctx, v := witnessed(ctx, opLoad)
	out, err := s.transport.send(ctx, &getRequest{store: s, id: id, part: part})
	v.ambiguous = false // a read writes nothing, however it ends
	if err != nil {
		return found{}, v.storeError(err)
	}
	return out, nil
}

// unloaded is the error of an answer that could not be loaded. One that is
// damaged is so for good only if its record still stands: meanwhile it may have
// been purged, or have expired and been locked afresh, and then a repeated
// request gets its answer.
func (s *Store) unloaded(ctx context.Context, record lambdaidem.Record, a *apart, err error) error {
	lost := (*damagedAnswerError)(nil)
	if !errors.As(err, &lost) {
		if _, ok := errors.AsType[*keyError](err); ok {
			return noKey(opLoad, err)
		}
		return err // a StoreError
	}
	if a.Parts.Count > 0 {
		stands, unread := s.read(ctx, record.ID, false)
		if unread != nil {
			return unread
		}
		if now, err := s.layout.record(stands); stands.none() || err == nil && !now.names(a) {
			return &lambdaidem.StoreError{Op: opLoad, NotApplied: true, Err: fmt.Errorf("the record changed while its answer was read: %w", lost)}
		}
	}
	return &lambdaidem.StoreError{Op: opLoad, Reason: lambdaidem.ReasonForeign, NotApplied: true, Err: lost}
}

// names tells whether the item is that of this answer, and so of its attempt: the
// checksum is bound to it.
func (it *item) names(a *apart) bool {
	return it.Parts != nil && bytes.Equal(it.Parts.Checksum, a.Parts.Checksum)
}

// damagedAnswerError is what was found wrong with a stored answer.
type damagedAnswerError struct{ why error }

func (e *damagedAnswerError) Error() string {
	return "what is stored is not what was written: " + e.why.Error()
}
func (e *damagedAnswerError) Unwrap() error { return e.why }

func damaged(err error) error {
	if err == nil {
		return nil
	}
	return &damagedAnswerError{err}
}
