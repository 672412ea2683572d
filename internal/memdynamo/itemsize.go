package memdynamo

// Size returns the item's size in bytes by AWS's rule ("DynamoDB Item sizes and formats"): the
// sum of the sizes of names and values. Capacity and the limit of 400 KB are based on it. The
// size of an absent item is 0.
func (i Item) Size() int {
	size := 0
	for name, v := range i {
		size += len(name) + v.size()
	}
	return size
}

func (v Value) size() int {
	const perDocument, perElement = 3, 1
	switch v.Type {
	case TypeString, TypeBinary:
		return len(v.Text)
	case TypeNumber:
		return mustNumber(v.Text).size()
	case TypeList:
		size := perDocument
		for _, e := range v.List {
			size += perElement + e.size()
		}
		return size
	case TypeMap:
		size := perDocument
		for name, e := range v.Map {
			size += perElement + len(name) + e.size()
		}
		return size
	case TypeStringSet, TypeBinarySet:
		size := 0
		for _, e := range v.Set {
			size += len(e)
		}
		return size
	case TypeNumberSet:
		size := 0
		for _, e := range v.Set {
			size += mustNumber(e).size()
		}
		return size
	}
	return 1 // BOOL, NULL
}
