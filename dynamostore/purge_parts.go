package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// deleteParts deletes the parts of an answer that was erased. The deletes need no condition:
// the key of a part contains a checksum of the answer, so a part of another answer has another
// key.
func (p *purge) deleteParts(ctx context.Context, itm *item) error {
	list := itm.Erasing
	for n := range list.Count {
		out, fate, err := p.o.s.deleteItem(ctx, &dynamodb.DeleteItemInput{Key: p.o.s.key(partID(itm.ID, list.Checksum, n+1))})
		if err != nil {
			return failed(opPurge, fate, fmt.Errorf("part %d of %d of the answer: %w", n+1, list.Count, err))
		}
		p.count(func(sum *PurgeProgress) { sum.Parts++ })
		if err := p.spend(ctx, unitsOf(out.ConsumedCapacity)); err != nil {
			return err
		}
	}
	return nil
}

// removePartList removes the list of parts from a record after the parts were deleted. It reports
// false if the record has changed since it was read.
func (p *purge) removePartList(ctx context.Context, itm *item) (bool, error) {
	return p.updateAsSeen(ctx, &item{ID: itm.ID}, itm, attrErasing)
}
