package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// keySample is the number of items that CheckKeys reads.
const keySample = 100

// CheckKeys checks whether the functions of Options.Encryption return the right keys: Current
// returns a key, Find returns the same key for its id, and the keys decrypt what the table
// contains.
//
// For the last check, CheckKeys reads one page of a Scan with up to 100 items. For each key id on
// the page, it decrypts one answer or step. It skips answers that are stored in parts. A nil result
// does not prove that all keys are right, because other items may be encrypted under other keys.
//
// CheckKeys returns nil or [TableProblems] with [NoKey], [UnreadableTexts], or the problem of a
// failed dynamodb:Scan. Without Options.Encryption it returns nil. It consumes up to 128 read
// units.
func (s *Store) CheckKeys(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	if err := s.keys.prove(ctx); err != nil {
		return TableProblems{{Code: NoKey, Err: err, Detail: fmt.Sprintf(
			"the encryption of table %q has no key that it finds again; look at what Options.Encryption asks, and at its permissions (cause: %v)", s.table, err)}}
	}
	p, err := s.scan(ctx, "", &dynamodb.ScanInput{Limit: aws.Int32(keySample)})
	if err != nil {
		return TableProblems{failedCheck(s.wire.SDK(), s.table, "dynamodb:Scan", err)}
	}
	var problems TableProblems
	var tried []string // key ids
	for _, itm := range p.items {
		text, open := s.sealedText(ctx, itm)
		parsed, err := parseSealed(text)
		if err != nil || slices.Contains(tried, parsed.keyID) {
			continue
		}
		tried = append(tried, parsed.keyID)
		if err := open(); err != nil {
			problems = append(problems, s.unreadable(itm, parsed.keyID, err))
		}
	}
	return problems.err()
}

// sealedText returns the encrypted form of one step or answer of the item, and a function that
// tries to decrypt it. Both are nil if the item has no encrypted step or answer. sealedText does
// not read parts: for an answer stored in parts, text is nil, and open is a function that fails.
func (s *Store) sealedText(ctx context.Context, itm *item) (text []byte, open func() error) {
	if itm.sealsSteps() {
		for name, ciphertext := range itm.Steps {
			return ciphertext, func() error {
				_, _, err := s.decryptText(itm.ID, purposeOfStep(name), ciphertext, s.findWith(ctx))
				return err
			}
		}
	}
	record := itm.record()
	if a, ok := record.Result.Apart.(*apart); ok && a.sealed() {
		return a.Data, func() error {
			_, err := s.openAnswer(ctx, record, a, a.Data)
			return err
		}
	}
	return nil, nil
}

// unreadable returns the problem to report for an item with a step or an answer that can't be
// decrypted. keyID is the id of the key that encrypted the step or answer, and err is the error of
// the decryption.
func (s *Store) unreadable(itm *item, keyID string, err error) *TableProblem {
	p := &TableProblem{Code: UnreadableTexts, Err: err}
	switch {
	case errors.Is(err, ErrKeyGone):
		p.Detail = fmt.Sprintf("record %q of table %q is encrypted under the key %q, which the keys given don't have; add it, or give the keys of this table's functions", itm.ID, s.table, keyID)
	case errors.Is(err, errOtherSeal):
		p.Detail = fmt.Sprintf("record %q of table %q is encrypted under the key %q, and the key given by that id does not decrypt it: its secret is another one, or the record was changed", itm.ID, s.table, keyID)
	default:
		p.Code = NoKey
		p.Detail = fmt.Sprintf("the key %q, under which record %q of table %q is encrypted, can't be had (cause: %v)", keyID, itm.ID, s.table, err)
	}
	return p
}
