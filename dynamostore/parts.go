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

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file stores answers that are compressed, or divided into parts, each an item
// beside the record. The parts are written before the completion that names them. If the
// completion fails, nothing refers to the parts, and they expire.

const (
	// partSize is the number of bytes in each part except the last. DynamoDB allows
	// items of 400 KB. Smaller parts cost a unit more for each MB, but a request that is
	// lost or throttled costs less to send again.
	partSize = 256 << 10
	// partsAtOnce is the number of parts that are written or read at the same time.
	partsAtOnce = 4
	// partOutlives is how much longer a part is kept than the item of its record. A
	// reader must find all parts of a record, even if its clock is wrong or it reads
	// slowly.
	partOutlives = time.Hour
	// encodedOverhead is the maximum number of bytes in the additional attributes of a
	// compressed answer.
	encodedOverhead = 100
	// maxParts limits how many parts a process reads for a damaged record.
	maxParts = maxAnswerBound/partSize + 1 // one more for the overhead of encryption
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

// parts describes a stored answer that has an encoding.
type parts struct {
	Count    int    // the number of parts; 0 if the record has the stored bytes
	Length   int    // the size of the answer in bytes, before compression
	Checksum []byte // see checksum
	Failure  bool   // the answer is the JSON of a lambdaidem.Failure
}

// checksum returns the SHA-256 of a record's id, an attempt's token, an encoding and an
// answer, so that the answer of one record or attempt is not taken for another's. (It
// takes 7 ms for 8 MB, where CRC-64 takes 6 ms.)
func checksum(id, token, encoding string, answer []byte) []byte {
	h := sha256.New()
	for _, s := range []string{id, token, encoding} {
		var size [8]byte // makes the concatenation unambiguous
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		_, _ = io.WriteString(h, s)
	}
	h.Write(answer)
	return h.Sum(nil)
}

// partID returns the key of a part. number is at least 1. The key contains the checksum,
// so that a write that arrives late or twice can't replace a part by other bytes. It
// begins with the record's id, so that an IAM policy for the keys of records also covers
// parts.
func partID(record string, sum []byte, number int) string {
	return record + "#" + strconv.Itoa(number) + "#" + base64.RawURLEncoding.EncodeToString(sum)
}

// packed is the result to store in a record, and the bytes to write into parts before.
type packed struct {
	result lambdaidem.Result // the argument for item.finish
	stored []byte            // nil if the answer has no parts
}

// pack decides how to store an answer. It writes nothing. It returns a StoreError if the
// answer exceeds Options.MaxAnswer, or if there is no key to encrypt it with.
func (s *Store) pack(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (packed, error) {
	o := &s.opts
	result.Apart = nil
	answer := result.Value
	if f := result.Failure; f != nil {
		if s.keys == nil && len(f.Code)+len(f.Type)+len(f.Message) <= o.MaxInline {
			return packed{result: result}, nil
		}
		var err error
		if answer, err = json.Marshal(f); err != nil { // can't happen: a Failure has only strings and a number
			panic(err)
		}
	}
	if len(answer) > o.MaxAnswer {
		return packed{}, &lambdaidem.StoreError{Op: opComplete, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
			Err: fmt.Errorf("the answer has %d bytes; Options.MaxAnswer is %d", len(answer), o.MaxAnswer)}
	}
	stored, encoding := answer, encodingPlain
	if len(answer) >= o.CompressFrom {
		// Saving 1 KB saves one write unit, whatever the size of the rest of the item.
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
		summed = stored // a checksum of the plaintext would let a reader of the table confirm a guess
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

// prepare packs a result and writes its parts, before the completion is sent. It returns
// the argument for item.finish, or a StoreError. Parts that were written before an error
// do no harm.
func (s *Store) prepare(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Result, error) {
	p, err := s.pack(ctx, lease, result)
	if err == nil {
		err = s.writeParts(ctx, lease, p)
	}
	return p.result, err
}

// writeParts writes the parts of a packed result. It may be called again for the same
// result.
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
			_, err := s.wire.Do(ctx, &s.puttingPart(item).Request)
			if err == nil {
				return nil
			}
			// The error is that of the completion, which was not sent.
			return failed(opComplete, wire.NotApplied, fmt.Errorf("part %d of %d of the answer: %w", number, a.Parts.Count, err))
		})
	}
	return group.Wait() //nolint:wrapcheck // a StoreError
}

// part returns the item for part n of a result. The item has no token attribute, so
// no attempt can lock it; see lockIsFree. If the record never expires, neither does the
// part.
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

// Load returns the answer of a completed record that is compressed, encrypted or stored
// in several items; see [lambdaidem.Loader]. It reads the items consistently.
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

// open decrypts and decompresses the stored bytes, and verifies that the result is the
// answer that was stored. The error is a damagedAnswerError or a keyError.
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

// joined concatenates the parts. It does not copy a single part.
func joined(stored [][]byte) []byte {
	if len(stored) == 1 {
		return stored[0]
	}
	return slices.Concat(stored...)
}

// readParts reads the parts of an answer.
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
	return stored, group.Wait() //nolint:wrapcheck // an error of readPart
}

func (s *Store) readPart(ctx context.Context, record lambdaidem.Record, a *apart, number int) ([]byte, error) {
	part := s.gettingPart(partID(record.ID, a.Parts.Checksum, number))
	if _, err := s.wire.Do(ctx, &part.Request); err != nil {
		return nil, failed(opLoad, wire.NotApplied, err)
	}
	if len(part.attrs) == 0 {
		return nil, damaged(fmt.Errorf("part %d of %d is missing", number, a.Parts.Count))
	}
	data, ok := part.attrs[s.layout.nameOf(attrData)].(*types.AttributeValueMemberB)
	if !ok {
		return nil, damaged(fmt.Errorf("part %d of %d has no binary %s", number, a.Parts.Count, attrData))
	}
	return data.Value, nil
}

// unloaded returns the error for an answer that could not be loaded. A part may be
// missing because the record has changed since it was read: it was purged, or it has
// expired and been locked again. So before unloaded reports that the answer is damaged,
// it reads the record again. If the record has changed, the error is one after which
// the client may retry.
func (s *Store) unloaded(ctx context.Context, record lambdaidem.Record, a *apart, err error) error {
	lost := (*damagedAnswerError)(nil)
	if !errors.As(err, &lost) {
		if _, ok := errors.AsType[*keyError](err); ok {
			return noKey(opLoad, err)
		}
		return err // a StoreError
	}
	if a.Parts.Count > 0 {
		now, unread := s.read(ctx, opLoad, record.ID)
		if unread != nil && !isForeign(unread) {
			return unread
		}
		if unread == nil && (now == nil || !now.names(a)) {
			return &lambdaidem.StoreError{Op: opLoad, NotApplied: true, Err: fmt.Errorf("the record changed while its answer was read: %w", lost)}
		}
	}
	return &lambdaidem.StoreError{Op: opLoad, Reason: lambdaidem.ReasonForeign, NotApplied: true, Err: lost}
}

// names reports whether the item refers to the answer a. The checksum also covers the
// attempt's token, so an equal checksum means the same attempt.
func (it *item) names(a *apart) bool {
	return it.Parts != nil && bytes.Equal(it.Parts.Checksum, a.Parts.Checksum)
}

// damagedAnswerError says how a stored answer differs from what was written.
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
