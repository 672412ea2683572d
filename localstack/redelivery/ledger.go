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

// Ledger is the table in which a consumer records what it does. The writes of [Ledger.Enlist] are
// committed in one transaction with the message's record. All other methods that write take
// effect at once.
//
//	effect#NAME     effects    N     number of commits of the message's effect
//	group#GROUP     committed  L     names of messages, in the order of their commits
//	runs#NAME       requests   L     request ID of each run, in the order in which the runs began
//	gate#NAME       isopen     BOOL  always true; the item exists once the gate is open
//	invocation#ID   arrived    BOOL  always true
//	                time_left  N     milliseconds until the deadline when it answered; absent before
type Ledger struct {
	Client *dynamodb.Client
	Table  string
}

type itemID struct {
	ID string `dynamodbav:"id"`
}

// Enlist enlists the effect of a message: it increments the count of effects and appends the
// message to its group.
func (l Ledger) Enlist(tx *dynamostore.Tx, m Message) {
	tx.UpdateValue("effect", l.Table, itemID{"effect#" + m.Name}, "ADD effects :one", dynamostore.Args{":one": 1})
	tx.UpdateValue("order", l.Table, itemID{"group#" + m.Group}, "SET committed = list_append(if_not_exists(committed, :none), :this)",
		dynamostore.Args{":none": []string{}, ":this": []string{m.Name}})
}

// Begin records the beginning of a run of a message, and returns the number of the run, counted
// from 1.
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

// Arrive records that an invocation has begun.
func (l Ledger) Arrive(ctx context.Context, request string) error {
	_, err := l.update(ctx, "invocation#"+request, "SET arrived = :yes", dynamostore.Args{":yes": true})
	return err
}

// Leave records that an invocation is about to answer, and the time until its deadline.
func (l Ledger) Leave(ctx context.Context, request string, left time.Duration) error {
	_, err := l.update(ctx, "invocation#"+request, "SET time_left = :left", dynamostore.Args{":left": left.Milliseconds()})
	return err
}

// Open opens the gate of a message. A gate is never closed again.
func (l Ledger) Open(ctx context.Context, message string) error {
	_, err := l.update(ctx, "gate#"+message, "SET isopen = :yes", dynamostore.Args{":yes": true})
	return err
}

// IsOpen reports whether the gate of a message is open.
func (l Ledger) IsOpen(ctx context.Context, message string) (bool, error) {
	rows, err := l.rows(ctx, "gate#"+message)
	return len(rows) > 0, err
}

// Count is what the ledger has recorded about one message.
type Count struct {
	Effects int      // number of committed effects
	Runs    []string // request ID of each run, in the order in which the runs began
}

// Counts returns the counts of the given messages by name. There may be at most 50 messages.
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

// Committed returns the messages of a group in the order of their commits.
func (l Ledger) Committed(ctx context.Context, group string) ([]string, error) {
	rows, err := l.rows(ctx, "group#"+group)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0].Committed, nil
}

// Arrived reports whether an invocation has begun. left is the time until its deadline when it
// answered, or 0 if it has not answered.
func (l Ledger) Arrived(ctx context.Context, request string) (arrived bool, left time.Duration, err error) {
	rows, err := l.rows(ctx, "invocation#"+request)
	if err != nil || len(rows) == 0 {
		return false, 0, err
	}
	return true, time.Duration(rows[0].Left) * time.Millisecond, nil
}

// Everything scans the whole ledger. It returns the counts of all messages, and the messages of
// each group in the order of their commits.
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

// row is an item of any kind.
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

// rows returns the existing items with these IDs.
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
