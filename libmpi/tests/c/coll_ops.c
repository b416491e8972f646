// ranks 2
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* What MPI's table of operations knows. */
enum { INTEGER = 1, FLOATING = 2, LOGICAL = 4, COMPLEX = 8, BYTE = 16, PAIR = 32, NONE = 0 };

static const struct { MPI_Op op; int classes; } OPS[] = {
    {MPI_MAX, INTEGER | FLOATING}, {MPI_MIN, INTEGER | FLOATING},
    {MPI_SUM, INTEGER | FLOATING | COMPLEX}, {MPI_PROD, INTEGER | FLOATING | COMPLEX},
    {MPI_LAND, INTEGER | LOGICAL}, {MPI_LOR, INTEGER | LOGICAL}, {MPI_LXOR, INTEGER | LOGICAL},
    {MPI_BAND, INTEGER | BYTE}, {MPI_BOR, INTEGER | BYTE}, {MPI_BXOR, INTEGER | BYTE},
    {MPI_MAXLOC, PAIR}, {MPI_MINLOC, PAIR},
    {MPI_REPLACE, NONE}, {MPI_NO_OP, NONE},
};

static const struct { MPI_Datatype type; int class; } TYPES[] = {
    {MPI_INT, INTEGER}, {MPI_LONG, INTEGER}, {MPI_SHORT, INTEGER}, {MPI_UNSIGNED_SHORT, INTEGER},
    {MPI_UNSIGNED, INTEGER}, {MPI_UNSIGNED_LONG, INTEGER}, {MPI_LONG_LONG_INT, INTEGER},
    {MPI_UNSIGNED_LONG_LONG, INTEGER}, {MPI_SIGNED_CHAR, INTEGER}, {MPI_UNSIGNED_CHAR, INTEGER},
    {MPI_CHAR, INTEGER},
    {MPI_INT8_T, INTEGER}, {MPI_INT16_T, INTEGER}, {MPI_INT32_T, INTEGER}, {MPI_INT64_T, INTEGER},
    {MPI_UINT8_T, INTEGER}, {MPI_UINT16_T, INTEGER}, {MPI_UINT32_T, INTEGER}, {MPI_UINT64_T, INTEGER},
    {MPI_INTEGER, INTEGER}, {MPI_AINT, INTEGER}, {MPI_COUNT, INTEGER}, {MPI_OFFSET, INTEGER},
    {MPI_INTEGER1, INTEGER}, {MPI_INTEGER2, INTEGER}, {MPI_INTEGER4, INTEGER}, {MPI_INTEGER8, INTEGER},
    {MPI_FLOAT, FLOATING}, {MPI_DOUBLE, FLOATING}, {MPI_LONG_DOUBLE, FLOATING}, {MPI_REAL, FLOATING},
    {MPI_DOUBLE_PRECISION, FLOATING}, {MPI_REAL4, FLOATING}, {MPI_REAL8, FLOATING},
    {MPI_LOGICAL, LOGICAL}, {MPI_C_BOOL, LOGICAL}, {MPI_CXX_BOOL, LOGICAL},
    {MPI_COMPLEX, COMPLEX}, {MPI_C_COMPLEX, COMPLEX}, {MPI_C_FLOAT_COMPLEX, COMPLEX},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX}, {MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX}, {MPI_DOUBLE_COMPLEX, COMPLEX},
    {MPI_CXX_FLOAT_COMPLEX, COMPLEX}, {MPI_CXX_DOUBLE_COMPLEX, COMPLEX}, {MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX},
    {MPI_COMPLEX8, COMPLEX}, {MPI_COMPLEX16, COMPLEX}, {MPI_BYTE, BYTE},
    {MPI_FLOAT_INT, PAIR}, {MPI_DOUBLE_INT, PAIR}, {MPI_LONG_INT, PAIR}, {MPI_2INT, PAIR}, {MPI_SHORT_INT, PAIR},
    {MPI_LONG_DOUBLE_INT, PAIR}, {MPI_2REAL, PAIR}, {MPI_2DOUBLE_PRECISION, PAIR}, {MPI_2INTEGER, PAIR},
    {MPI_WCHAR, NONE}, {MPI_CHARACTER, NONE}, {MPI_PACKED, NONE},
};

#define LENGTH(list) (sizeof(list) / sizeof(*(list)))

static void table(void) {
    _Alignas(16) static char in[64], out[64];
    for (size_t o = 0; o < LENGTH(OPS); o++)
        for (size_t t = 0; t < LENGTH(TYPES); t++) {
            int code = OPS[o].classes & TYPES[t].class ? MPI_SUCCESS : MPI_ERR_OP;
            memset(in, 0, sizeof in), memset(out, 0, sizeof out);
            FAILS(MPI_Allreduce(in, out, 1, TYPES[t].type, OPS[o].op, MPI_COMM_WORLD), code);
            FAILS(MPI_Reduce_local(in, out, 1, TYPES[t].type, OPS[o].op), code);
            FAILS(MPI_Reduce_local_c(in, out, 0, TYPES[t].type, OPS[o].op), code);
        }
}

/* Results of the two ranks' values `a` and `b`. */
#define VALUES(ctype, type, op, a, b, result)                                              \
    do {                                                                                   \
        ctype mine_ = rank == 0 ? (a) : (b), theirs_ = 0, local_ = (b), first_ = (a);      \
        CHECK(MPI_Allreduce(&mine_, &theirs_, 1, type, op, MPI_COMM_WORLD) == MPI_SUCCESS); \
        CHECK(theirs_ == (ctype)(result));                                                 \
        CHECK(MPI_Reduce_local(&first_, &local_, 1, type, op) == MPI_SUCCESS);             \
        CHECK(local_ == (ctype)(result));                                                  \
    } while (0)

static void values(void) {
    VALUES(int, MPI_INT, MPI_MAX, -3, 2, 2);
    VALUES(unsigned char, MPI_UNSIGNED_CHAR, MPI_MAX, 200, 3, 200);
    VALUES(signed char, MPI_SIGNED_CHAR, MPI_MIN, -100, 3, -100);
    /* C's char has the sign that it has here. */
    VALUES(char, MPI_CHAR, MPI_SUM, 'a', 2, 'c');
    VALUES(char, MPI_CHAR, MPI_MAX, (char)-100, 3, (char)-100 < 3 ? 3 : (char)-100);
    VALUES(char, MPI_CHAR, MPI_MIN, (char)-100, 3, (char)-100 < 3 ? (char)-100 : 3);
    VALUES(char, MPI_CHAR, MPI_BXOR, 12, 10, 6);
    VALUES(uint64_t, MPI_UINT64_T, MPI_SUM, UINT64_MAX, 2, 1);
    VALUES(int16_t, MPI_SHORT, MPI_PROD, -7, 6, -42);
    VALUES(int, MPI_INT, MPI_LAND, 4, 2, 1);
    VALUES(bool, MPI_C_BOOL, MPI_LXOR, true, true, false);
    VALUES(long, MPI_LONG, MPI_BXOR, 12, 10, 6);
    VALUES(unsigned char, MPI_BYTE, MPI_BOR, 0xf0, 0x0f, 0xff);
    VALUES(float, MPI_FLOAT, MPI_PROD, 1.5f, -2, -3);
    VALUES(long double, MPI_LONG_DOUBLE, MPI_SUM, 1e300L, 1, 1e300L + 1);
    VALUES(double complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, 1 + 2 * I, 3 - I, 5 + 5 * I);
    VALUES(float complex, MPI_C_FLOAT_COMPLEX, MPI_SUM, 1 + 2 * I, 3 - I, 4 + I);
    VALUES(MPI_Aint, MPI_AINT, MPI_SUM, 3, 4, 7);
}

/* Pairs of a value and a place: of equal values, the lower place. Nothing is written into their gaps. */
#define PAIRS(ctype, type)                                                                     \
    do {                                                                                       \
        struct { ctype value; int place; } mine_[2], found_[2];                                \
        memset(found_, 0x55, sizeof found_);                                                   \
        mine_[0].value = 5 - rank, mine_[0].place = rank;                                      \
        mine_[1].value = 3, mine_[1].place = 9 - rank;                                         \
        CHECK(MPI_Allreduce(mine_, found_, 2, type, MPI_MINLOC, MPI_COMM_WORLD) == MPI_SUCCESS); \
        CHECK(found_[0].value == 4 && found_[0].place == 1);                                   \
        CHECK(found_[1].value == 3 && found_[1].place == 8);                                   \
        CHECK(MPI_Allreduce(mine_, found_, 2, type, MPI_MAXLOC, MPI_COMM_WORLD) == MPI_SUCCESS); \
        CHECK(found_[0].value == 5 && found_[0].place == 0);                                   \
        CHECK(found_[1].value == 3 && found_[1].place == 8);                                   \
    } while (0)

int main(void) {
    start();
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    table();
    values();
    PAIRS(float, MPI_FLOAT_INT);
    PAIRS(double, MPI_DOUBLE_INT);
    PAIRS(long, MPI_LONG_INT);
    PAIRS(int, MPI_2INT);
    PAIRS(short, MPI_SHORT_INT);
    PAIRS(long double, MPI_LONG_DOUBLE_INT);
    for (size_t o = 0; o < LENGTH(OPS); o++) {
        int commutes = -1;
        MPI_Op op = OPS[o].op;
        CHECK(MPI_Op_commutative(op, &commutes) == MPI_SUCCESS && commutes == (OPS[o].classes != NONE));
        FAILS(MPI_Op_free(&op), MPI_ERR_OP);
        CHECK(op == OPS[o].op);
    }
    /* Types that are chosen by their precision are predefined. */
    MPI_Datatype chosen;
    CHECK(MPI_Type_create_f90_real(12, MPI_UNDEFINED, &chosen) == MPI_SUCCESS);
    VALUES(double, chosen, MPI_SUM, 1.5, 2, 3.5);
    CHECK(MPI_Type_create_f90_integer(8, &chosen) == MPI_SUCCESS);
    VALUES(int, chosen, MPI_BAND, 6, 3, 2);
    FAILS(MPI_Reduce_local(&rank, &size, 1, chosen, MPI_MINLOC), MPI_ERR_OP);
    CHECK(MPI_Type_create_f90_complex(5, MPI_UNDEFINED, &chosen) == MPI_SUCCESS);
    VALUES(float complex, chosen, MPI_PROD, 1 + 2 * I, 3 - I, 5 + 5 * I);
    /* Types whose numbers no processor computes with, and no type. */
    char in[64] = {0}, out[64];
    FAILS(MPI_Reduce_local(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
    FAILS(MPI_Allreduce(in, out, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(in, out, 1, MPI_COMPLEX4, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP);
    MPI_Finalize();
    return 0;
}
