package redelivery

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Ledger is the table that a consumer writes what it does to. What it enlists
// happens with a message's record; everything else happens at once, by itself.
//
//	effect#NAME     effects    N  how often the message's effect was committed
//	group#GROUP     committed  L  the names of messages, in the order of their commits
//	runs#NAME       requests   L  the invocation of each run, in the order of their beginnings
//	gate#NAME                     is there once the gate is open
//	invocation#ID   time_left  N  milliseconds until the deadline when it answered; absent before
type Ledger struct {
	Client *dynamodb.Client
	Table  string
}

type itemID struct {
	ID string `dynamodbav:"id"`
}

// Enlist enlists the effect of a message: its count, and its place in its group.
func (l Ledger) Enlist(tx *dynamostore.Tx, m Message) {
	tx.UpdateValue("effect", l.Table, itemID{"effect#" + m.Name}, "ADD effects :one", dynamostore.Args{":one": 1})
	tx.UpdateValue("order", l.Table, itemID{"group#" + m.Group}, "SET committed = list_append(if_not_exists(committed, :none), :this)",
		dynamostore.Args{":none": []string{}, ":this": []string{m.Name}})
}

// Begin writes down that a run at a message begins, and returns the run's number,
// from 1 on.
func (l Ledger) Begin(ctx context.Context, message, request string) (run int, err error) {
	out, err := l.update(ctx, "runs#"+message, "SET requests = list_append(if_not_exists(requests, :none), :this)",
		dynamostore.Args{":none": []string{}, ":this": []string{request}})
	if err != nil {
		return 0, err
	}
	var item row
	if err := attributevalue.UnmarshalMap(out.Attributes, &item); err != nil {
		return 0, fmt.Errorf("redelivery: read the runs of %s: %w", message, err)
	}
	return len(item.Requests), nil
}

// Arrive writes down that an invocation has begun.
func (l Ledger) Arrive(ctx context.Context, request string) error {
	_, err := l.update(ctx, "invocation#"+request, "SET arrived = :yes", dynamostore.Args{":yes": true})
	return err
}

// Leave writes down that an invocation is about to answer, and how much of its time
// is left.
func (l Ledger) Leave(ctx context.Context, request string, left time.Duration) error {
	_, err := l.update(ctx, "invocation#"+request, "SET time_left = :left", dynamostore.Args{":left": left.Milliseconds()})
	return err
}

// Open opens a message's gate, for good.
func (l Ledger) Open(ctx context.Context, message string) error {
	_, err := l.update(ctx, "gate#"+message, "SET isopen = :yes", dynamostore.Args{":yes": true})
	return err
}

// IsOpen tells whether a message's gate is open.
func (l Ledger) IsOpen(ctx context.Context, message string) (bool, error) {
	rows, err := l.rows(ctx, "gate#"+message)
	return len(rows) > 0, err
}

// Count is what the ledger has of one message.
type Count struct {
	Effects int      // committed
	Runs    []string // the invocation of each run, in the order of their beginnings
}

// Counts are those of some messages, at most 50, by their names.
func (l Ledger) Counts(ctx context.Context, messages ...string) (map[string]Count, error) {
	ids, counts := make([]string, 0, 2*len(messages)), map[string]Count{}
	for _, name := range messages {
		if _, twice := counts[name]; !twice {
			counts[name] = Count{}
			ids = append(ids, "effect#"+name, "runs#"+name)
		}
	}
	rows, err := l.rows(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		kind, name, _ := strings.Cut(r.ID, "#")
		c := counts[name]
		if kind == "effect" {
			c.Effects = r.Effects
		} else {
			c.Runs = r.Requests
		}
		counts[name] = c
	}
	return counts, nil
}

// Committed are the messages of a group in the order of their commits.
func (l Ledger) Committed(ctx context.Context, group string) ([]string, error) {
	rows, err := l.rows(ctx, "group#"+group)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0].Committed, nil
}

// Arrived tells whether an invocation has begun, and Left how much of its time it
// had left when it answered; 0 if it did not.
func (l Ledger) Arrived(ctx context.Context, request string) (arrived bool, left time.Duration, err error) {
	rows, err := l.rows(ctx, "invocation#"+request)
	if err != nil || len(rows) == 0 {
		return false, 0, err
	}
	return true, time.Duration(rows[0].Left) * time.Millisecond, nil
}

// Everything is the whole ledger: the count of each message and the order of each
// group that is in it, asked for or not.
func (l Ledger) Everything(ctx context.Context) (map[string]Count, map[string][]string, error) {
	counts, order := map[string]Count{}, map[string][]string{}
	pages := dynamodb.NewScanPaginator(l.Client, &dynamodb.ScanInput{TableName: &l.Table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("redelivery: scan the ledger: %w", err)
		}
		var rows []row
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &rows); err != nil {
			return nil, nil, fmt.Errorf("redelivery: read the ledger: %w", err)
		}
		for _, r := range rows {
			kind, name, _ := strings.Cut(r.ID, "#")
			c := counts[name]
			switch kind {
			case "effect":
				c.Effects = r.Effects
				counts[name] = c
			case "runs":
				c.Runs = r.Requests
				counts[name] = c
			case "group":
				order[name] = r.Committed
			}
		}
	}
	return counts, order, nil
}

// row is any item of the ledger.
type row struct {
	ID        string   `dynamodbav:"id"`
	Effects   int      `dynamodbav:"effects"`
	Committed []string `dynamodbav:"committed"`
	Requests  []string `dynamodbav:"requests"`
	Left      int64    `dynamodbav:"time_left"`
}

func (l Ledger) update(ctx context.Context, id, expression string, args dynamostore.Args) (*dynamodb.UpdateItemOutput, error) {
	values, err := attributevalue.MarshalMap(args)
	if err != nil {
		return nil, fmt.Errorf("redelivery: write %s: %w", id, err)
	}
	out, err := l.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &l.Table, Key: key(id),
		UpdateExpression: &expression, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew})
	if err != nil {
		return nil, fmt.Errorf("redelivery: write %s: %w", id, err)
	}
	return out, nil
}

// rows are the items with these ids that are there.
func (l Ledger) rows(ctx context.Context, ids ...string) ([]row, error) {
	keys := make([]map[string]types.AttributeValue, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}
	out, err := l.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{l.Table: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
	if err != nil {
		return nil, fmt.Errorf("redelivery: read %s: %w", ids, err)
	}
	if len(out.UnprocessedKeys) > 0 {
		return nil, fmt.Errorf("redelivery: read %s: %s items had no room in the answer", ids, strconv.Itoa(len(out.UnprocessedKeys)))
	}
	var rows []row
	if err := attributevalue.UnmarshalListOfMaps(out.Responses[l.Table], &rows); err != nil {
		return nil, fmt.Errorf("redelivery: read %s: %w", ids, err)
	}
	return rows, nil
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}
