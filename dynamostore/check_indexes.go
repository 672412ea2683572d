package dynamostore

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// checkIndexes returns a problem for each key of a secondary index that can make DynamoDB refuse to
// write a record. DynamoDB refuses an item if its value for an index key has another type than the
// key, or is empty. An index key that is not an attribute of records is no problem, because the
// index does not include records. checkIndexes skips Options.LeaseIndex, which checkLeaseIndex
// checks.
func checkIndexes(table string, d *types.TableDescription, o *Options) TableProblems {
	var problems TableProblems
	columns := o.layout()
	check := func(index *string, key []types.KeySchemaElement, remedy string) {
		for _, k := range key {
			name := aws.ToString(k.AttributeName)
			is := attributeType(d, name)
			if writes, conflict := columns.conflict(name, is); conflict {
				problems = append(problems, &TableProblem{Code: IndexConflict, Detail: fmt.Sprintf(
					"index %q of table %q has the %s key %q of type %s, and records have an attribute of that name with values of type %s: "+
						"DynamoDB refuses to write them; %s", aws.ToString(index), table, k.KeyType, name, is, writes, remedy)})
			}
		}
	}
	for _, index := range d.GlobalSecondaryIndexes {
		if o.LeaseIndex == "" || aws.ToString(index.IndexName) != o.LeaseIndex {
			check(index.IndexName, index.KeySchema, "delete the index, or key it on an attribute that no record has")
		}
	}
	for _, index := range d.LocalSecondaryIndexes {
		check(index.IndexName, index.KeySchema, "a local index can't be deleted, so rename the attribute by an option, or make another table")
	}
	return problems
}

// conflict reports whether DynamoDB would refuse the store's writes if an index had the named
// attribute as a key of the given type. writtenKinds has the kinds of values that the store writes
// to the attribute, or "" if the store does not write the attribute.
func (l *layout) conflict(name string, key types.ScalarAttributeType) (writtenKinds kinds, conflict bool) {
	if name == attrPart { // the store's items for the parts of a large answer have a map in this attribute
		return kindMap, true
	}
	for i := range itemAttributes {
		if l[i].name == name {
			writtenKinds = itemAttributes[i].kinds
			return writtenKinds, writtenKinds != kinds(key)
		}
	}
	return "", false
}
