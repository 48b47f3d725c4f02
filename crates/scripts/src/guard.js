// Guards around functions of the language that loop in native code. The engine looks at the deadline while it runs
// bytecode and regular expressions, and not inside of these; so what they are given must be small enough.
(function () {
    const LENGTH_MAX = 10000000;
    const WORK_MAX = 1000000000;
    const apply = Reflect.apply;
    const isArray = Array.isArray;
    const toText = String;
    const RangeErrorOf = RangeError;
    const TypeErrorOf = TypeError;
    const spreadable = Symbol.isConcatSpreadable;

    function replace(prototype, name, make) {
        const original = prototype[name];
        if (typeof original !== 'function') return;
        const guarded = make(original);
        Object.defineProperty(guarded, 'name', { value: name, configurable: true });
        Object.defineProperty(prototype, name, { value: guarded, writable: true, configurable: true });
    }

    function checkLength(length) {
        if (length > LENGTH_MAX) throw new RangeErrorOf('The array is too long: ' + length);
    }

    // An array with the elements of an object that only has a length and indexes.
    function copyOf(object) {
        const length = Math.trunc(Number(object.length)) || 0;
        checkLength(length);
        const copy = [];
        copy.length = length < 0 ? 0 : length;
        for (let i = 0; i < length; i++) if (i in object) copy[i] = object[i];
        return copy;
    }

    const reading = ['every', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flat', 'flatMap', 'forEach',
        'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'slice', 'some', 'toLocaleString',
        'toReversed', 'toSorted', 'toSpliced', 'toString', 'with'];
    for (const name of reading) {
        replace(Array.prototype, name, (original) => function (...given) {
            if (!isArray(this)) {
                if (this === null || (typeof this !== 'object' && typeof this !== 'function')) {
                    return apply(original, this, given);
                }
                return apply(original, copyOf(this), given);
            }
            checkLength(this.length);
            return apply(original, this, given);
        });
    }
    for (const name of ['copyWithin', 'fill', 'reverse', 'shift', 'sort', 'splice', 'unshift']) {
        replace(Array.prototype, name, (original) => function (...given) {
            if (!isArray(this)) throw new TypeErrorOf(name + ' works on arrays only');
            checkLength(this.length);
            return apply(original, this, given);
        });
    }
    replace(Array.prototype, 'concat', (original) => function (...given) {
        for (const part of [this, ...given]) {
            if (isArray(part)) checkLength(part.length);
            else if (part !== null && part !== undefined && part[spreadable] !== undefined) {
                throw new TypeErrorOf('concat spreads arrays only');
            }
        }
        return apply(original, this, given);
    });

    for (const name of ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll']) {
        replace(String.prototype, name, (original) => function (pattern, ...rest) {
            if (this === null || this === undefined || pattern instanceof RegExp || pattern === undefined) {
                return apply(original, this, pattern === undefined && rest.length === 0 ? [] : [pattern, ...rest]);
            }
            const text = toText(this);
            const sought = toText(pattern);
            if (text.length * sought.length > WORK_MAX) throw new RangeErrorOf('The texts are too long for ' + name);
            return apply(original, text, [sought, ...rest]);
        });
    }
})();
