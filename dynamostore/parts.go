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

// This file stores answers that are compressed or too large for one item. A large answer
// is divided into parts, and each part is an item of its own in the same table. The parts
// are written before the record is completed, because the completed record refers to
// them. If the completion fails, no record refers to the parts, and DynamoDB's TTL
// deletes them.

const (
	// partSize is the number of bytes in each part except the last. DynamoDB allows items of 400
	// KB, but a smaller part is cheaper to send again if a request is lost or throttled. Compared
	// with parts of 400 KB, an answer costs about one more write unit per MB.
	partSize = 256 << 10
	// partsAtOnce is the number of parts that are written or read at the same time.
	partsAtOnce = 4
	// partOutlives is how much later the TTL of a part is than the TTL of its record. A replay must
	// find all parts of the record that it has read, even if its clock is wrong or it reads the
	// parts slowly.
	partOutlives = time.Hour
	// encodedOverhead is the maximum size in bytes of the attributes "encoding" and
	// "parts", which a record has only if its answer is compressed, encrypted or divided
	// into parts.
	encodedOverhead = 100
	// maxParts is the maximum number of parts of one answer. A record with a higher
	// number is damaged, and the store refuses it instead of reading the parts.
	maxParts = maxAnswerBound/partSize + 1 // one more for the overhead of encryption
)

// attrPart is the attribute that distinguishes a part from a record. Only parts have the
// attribute. Its value is a map that says which record and which attempt the part
// belongs to.
const attrPart = "part"

// The members of the map in the attribute attrPart, and their DynamoDB types.
const (
	partRecord  = "record"  // S, the id of the record
	partToken   = "token"   // S, the fencing token of the attempt that wrote the part
	partScope   = "scope"   // S, the scope of the record; absent if it is unknown
	partNumber  = "number"  // N, the number of the part, from 1
	partWritten = "written" // N, epoch milliseconds, by the clock of the attempt
)

// apart describes an answer that the record does not contain as plain bytes, because it
// is compressed, encrypted or divided into parts. It is the value that this package
// stores in lambdaidem.Result.Apart.
type apart struct {
	Encoding string // one of the encodings, such as encodingGzip
	Data     []byte // the encoded answer; nil if it is stored in parts
	Parts    parts
}

// parts describes an answer that is compressed, encrypted or stored in separate items. It is the
// value of a record's attribute "parts". A record whose answer is compressed or encrypted has this
// attribute even if the whole answer is in the record.
type parts struct {
	Count    int    // the number of parts; 0 if the record itself contains the stored bytes
	Length   int    // the size of the answer in bytes, before compression and encryption
	Checksum []byte // SHA-256, to detect a damaged answer; see the function checksum
	Failure  bool   // the answer is the JSON of a lambdaidem.Failure
}

// checksum returns the SHA-256 of a record's id, an attempt's token, an encoding and an answer. The
// id and the token let a reader detect an answer of another record or another attempt.
//
// SHA-256 takes 7 ms for 8 MB, hardly more than CRC-64, which takes 6 ms.
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

// partID returns the partition key of the item for one part of a large answer. Numbers begin at 1.
// The key contains the answer's checksum, so a write that arrives late or twice can't overwrite a
// part with different bytes. The key begins with the record's id, so an IAM policy that allows the
// keys of records also allows the keys of parts.
func partID(record string, sum []byte, number int) string {
	return record + "#" + strconv.Itoa(number) + "#" + base64.RawURLEncoding.EncodeToString(sum)
}

// writeParts writes the parts of a large answer to the table, several at a time. It does
// nothing if the answer is small enough for the record itself. Calling writeParts twice has
// the same effect as calling it once. The error is a StoreError.
func (s *Store) writeParts(ctx context.Context, lease lambdaidem.Lease, p packed) error {
	if p.partData == nil {
		return nil
	}
	a, _ := p.result.Apart.(*apart)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range a.Parts.Count {
		number, chunk := i+1, p.partData[i*partSize:min((i+1)*partSize, len(p.partData))]
		item := s.layout.part(lease, a.Parts.Checksum, number, chunk, p.result)
		group.Go(func() error {
			_, err := s.wire.Do(ctx, &s.puttingPart(item).Request)
			if err == nil {
				return nil
			}
			// The error says NotApplied, because the request that completes the record has
			// not been sent. Whether the part was written does not matter.
			return failed(opComplete, wire.NotApplied, fmt.Errorf("part %d of %d of the answer: %w", number, a.Parts.Count, err))
		})
	}
	return group.Wait() //nolint:wrapcheck // a StoreError
}

// part returns the item for part n of an answer. The item has no attribute "token", so the
// condition lockIsFree never holds for the item, and no attempt overwrites it as if it were an
// expired record. If the record never expires, neither does the part.
func (l *layout) part(lease lambdaidem.Lease, sum []byte, n int, data []byte, result lambdaidem.Result) attributes {
	origin := attributes{
		partRecord:  str(validUTF8(lease.ID)),
		partToken:   str(validUTF8(lease.Token)),
		partNumber:  number(int64(n)),
		partWritten: number(result.At.UnixMilli()),
	}
	if lease.Scope != "" {
		origin[partScope] = str(validUTF8(lease.Scope))
	}
	attrs := l.key(partID(lease.ID, sum, n))
	attrs[l.nameOf(attrData)] = &types.AttributeValueMemberB{Value: data}
	attrs[attrPart] = &types.AttributeValueMemberM{Value: origin}
	if !result.Expires.IsZero() {
		attrs[l.nameOf(attrExpiration)] = number(deletionOf(result.Expires.Add(partOutlives)).n)
	}
	return attrs
}

// Load returns the complete result of a completed record, even if its answer is compressed,
// encrypted or stored in parts. It implements [lambdaidem.Loader]. It reads the parts with
// strongly consistent reads. The error is a *[lambdaidem.StoreError]; its Reason is
// [lambdaidem.ReasonForeign] if the answer can never be read.
func (s *Store) Load(ctx context.Context, record lambdaidem.Record) (lambdaidem.Result, error) {
	result := record.Result
	a, ok := result.Apart.(*apart)
	if !ok {
		return result, nil
	}
	pieces := [][]byte{a.Data}
	var err error
	if a.Parts.Count > 0 {
		pieces, err = s.readParts(ctx, record, a)
	}
	var answer []byte
	if err == nil {
		answer, err = s.open(ctx, record, a, pieces)
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
		return lambdaidem.Result{}, s.loadError(ctx, record, a, err)
	}
	return result, nil
}

// open joins, decrypts and decompresses the stored pieces of an answer. It also verifies the
// answer's length and integrity. The error is a damagedAnswerError if the answer can never be read,
// and a keyError if the decryption key can't be fetched now.
func (s *Store) open(ctx context.Context, record lambdaidem.Record, a *apart, pieces [][]byte) (answer []byte, err error) {
	if err := s.checkEncrypted(a); err != nil {
		return nil, err
	}
	if a.sealed() {
		opened, err := s.openAnswer(ctx, record, a, joined(pieces))
		if err != nil {
			return nil, err
		}
		pieces = [][]byte{opened}
	}
	if a.zipped() {
		answer, err = decompressed(pieces, a.Parts.Length)
	} else {
		answer = joined(pieces)
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

// joined concatenates the pieces. If there is only one, joined returns it without a copy.
func joined(pieces [][]byte) []byte {
	if len(pieces) == 1 {
		return pieces[0]
	}
	return slices.Concat(pieces...)
}

// readParts reads the parts of an answer, several at a time. The error is a StoreError,
// or a damagedAnswerError if a part is missing or invalid.
func (s *Store) readParts(ctx context.Context, record lambdaidem.Record, a *apart) ([][]byte, error) {
	pieces := make([][]byte, a.Parts.Count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range pieces {
		group.Go(func() (err error) {
			pieces[i], err = s.readPart(ctx, record, a, i+1)
			return err
		})
	}
	return pieces, group.Wait() //nolint:wrapcheck // an error from readPart
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
