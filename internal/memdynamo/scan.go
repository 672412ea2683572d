package memdynamo

import (
	"slices"
)

// scan reads the table in the order of its keys. DynamoDB orders items by a hash of the partition
// key, so callers must not depend on the order.
func (db *DB) scan(in scanRequest) (any, error) {
	if in.Limit != nil && *in.Limit < 1 {
		return nil, invalidf("Limit must be greater than or equal to 1")
	}
	if err := checkChoice("select", in.Select, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES"); err != nil {
		return nil, err
	}
	if in.Select == "COUNT" && in.ProjectionExpression != nil {
		return nil, invalidf("Cannot specify the ProjectionExpression when choosing to get only the Count")
	}
	if err := in.checkCapacity(); err != nil {
		return nil, err
	}
	filter, p, err := in.bind()
	if err != nil {
		return nil, err
	}
	t, err := db.lookUp(in.TableName)
	if err != nil {
		return nil, err
	}
	items, err := t.after(in.ExclusiveStartKey)
	if err != nil {
		return nil, err
	}

	out, size := scanResult{}, 0
	for i, item := range items {
		out.ScannedCount++
		size += item.Size()
		if filter == nil || filter(item) {
			out.Count++
			if p != nil {
				item = p.of(item)
			}
			if in.Select != "COUNT" {
				out.Items = append(out.Items, item)
			}
		}
		if in.Limit != nil && out.ScannedCount == *in.Limit || size > maxPageSize && i+1 < len(items) {
			out.LastEvaluatedKey = t.keyOf(items[i])
			break
		}
	}
	out.ConsumedCapacity = consumed(t, in.ReturnConsumedCapacity, readUnits(size, in.ConsistentRead))
	return out, nil
}

type scanRequest struct {
	TableName            string
	ConsistentRead       bool
	Select               string
	Limit                *int
	ExclusiveStartKey    Item
	FilterExpression     *string
	ProjectionExpression *string
	expressionParameters
}

type scanResult struct {
	Items            []Item    `json:",omitempty"`
	Count            int       // after the filter
	ScannedCount     int       // before the filter
	LastEvaluatedKey Item      `json:",omitempty"`
	ConsumedCapacity *capacity `json:",omitempty"`
}

func (in scanRequest) bind() (filter condition, p projection, err error) {
	expr := expression{"FilterExpression", in.FilterExpression}
	s, err := newScope(in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ProjectionExpression, expr)
	if err != nil {
		return nil, nil, err
	}
	if expr.source != nil {
		if filter, _, err = bindCondition(*expr.source, s); err != nil {
			return nil, nil, expr.refuse(err)
		}
	}
	if in.ProjectionExpression != nil {
		if p, err = bindProjection(*in.ProjectionExpression, s); err != nil {
			return nil, nil, expression{kind: "ProjectionExpression"}.refuse(err)
		}
	}
	return filter, p, s.checkUsed()
}

// after returns the table's items that come after the key start, or all items if start is nil.
func (t *table) after(start Item) ([]Item, error) {
	items := t.sorted()
	if start == nil {
		return items, nil
	}
	start, err := checkedItem(start)
	if err != nil {
		return nil, err
	}
	if err := t.checkKey(start); err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(items, start, t.compareKeys)
	if found {
		i++
	}
	return items[i:], nil
}
