// ranks 2
/* Packed messages, positions, and the representation external32. */
#include "check.h"

static void messages(void) {
    char buffer[100];
    int numbers[2] = {7, 8}, got[2], position = 0, bytes, value;
    double real = 1.5, back = 0;
    MPI_Status status;
    if (rank == 0) {
        CHECK(MPI_Pack(numbers, 2, MPI_INT, buffer, 100, &position, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Pack(&real, 1, MPI_DOUBLE, buffer, 100, &position, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(position == 16);
        CHECK(MPI_Send(buffer, position, MPI_PACKED, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
        /* Packed data may be received by their types, and others as packed ones. */
        CHECK(MPI_Send(buffer, 8, MPI_PACKED, 1, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Send(&real, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Recv(buffer, 100, MPI_PACKED, 0, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        CHECK(MPI_Get_count(&status, MPI_PACKED, &bytes) == MPI_SUCCESS && bytes == 16);
        CHECK(MPI_Unpack(buffer, bytes, &position, got, 2, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Unpack(buffer, bytes, &position, &back, 1, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(position == 16 && got[1] == 8 && back == 1.5);
        FAILS(MPI_Unpack(buffer, bytes, &position, got, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
        CHECK(position == 16);
        CHECK(MPI_Recv(got, 2, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && got[0] == 7);
        position = 0;
        CHECK(MPI_Recv(buffer, 100, MPI_PACKED, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(MPI_Unpack(buffer, 8, &position, &back, 1, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS && back == 1.5);
    }
    CHECK(MPI_Pack_size(3, MPI_DOUBLE_INT, MPI_COMM_WORLD, &value) == MPI_SUCCESS && value >= 36);
}

static void errors(void) {
    char buffer[8];
    int number = 3, position = 6, value;
    MPI_Count far = 8, large;
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    CHECK(position == 6);
    position = 9;
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    position = -1;
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    position = 0;
    FAILS(MPI_Pack(&number, -1, MPI_INT, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_COUNT);
    FAILS(MPI_Pack(NULL, 1, MPI_INT, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Pack(&number, 1, MPI_INT, NULL, 8, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, -8, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, 8, NULL, MPI_COMM_WORLD), MPI_ERR_ARG);
    FAILS(MPI_Pack(&number, 1, MPI_DATATYPE_NULL, buffer, 8, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Pack(&number, 1, MPI_INT, buffer, 8, &position, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Pack_size(-1, MPI_INT, MPI_COMM_WORLD, &value), MPI_ERR_COUNT);
    FAILS(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK(MPI_Pack(&number, 0, MPI_INT, NULL, 0, &position, MPI_COMM_WORLD) == MPI_SUCCESS && position == 0);
    CHECK(MPI_Pack_c(&number, 0, MPI_INT, buffer, 8, &far, MPI_COMM_WORLD) == MPI_SUCCESS && far == 8);
    far = 4;
    CHECK(MPI_Pack_c(&number, 1, MPI_INT, buffer, 8, &far, MPI_COMM_WORLD) == MPI_SUCCESS && far == 8);
    far = 4, number = 0;
    CHECK(MPI_Unpack_c(buffer, 8, &far, &number, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS && number == 3);
    CHECK(MPI_Pack_size_c(5, MPI_INT, MPI_COMM_WORLD, &large) == MPI_SUCCESS && large == 20);
}

static void external(void) {
    unsigned char packed[40];
    int numbers[3] = {1, -2, 0x01020304}, got[3] = {0};
    MPI_Datatype type;
    MPI_Aint position = 0, need;
    MPI_Count far = 0, large;
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &type) == MPI_SUCCESS && MPI_Type_commit(&type) == MPI_SUCCESS);
    CHECK(MPI_Pack_external_size("external32", 1, type, &need) == MPI_SUCCESS && need == 8);
    CHECK(MPI_Pack_external_size_c("external32", 2, MPI_LONG, &large) == MPI_SUCCESS && large == 8);
    CHECK(MPI_Pack_external("external32", numbers, 1, type, packed, 40, &position) == MPI_SUCCESS && position == 8);
    CHECK(memcmp(packed, "\0\0\0\1\1\2\3\4", 8) == 0);
    position = 0;
    CHECK(MPI_Unpack_external("external32", packed, 8, &position, got, 1, type) == MPI_SUCCESS && position == 8);
    CHECK(got[0] == 1 && got[1] == 0 && got[2] == 0x01020304);
    FAILS(MPI_Unpack_external("external32", packed, 8, &position, got, 1, type), MPI_ERR_TRUNCATE);
    CHECK(MPI_Pack_external_c("external32", numbers, 2, MPI_INT, packed, 40, &far) == MPI_SUCCESS && far == 8);
    far = 4;
    CHECK(MPI_Unpack_external_c("external32", packed, 8, &far, got, 1, MPI_INT) == MPI_SUCCESS && got[0] == -2);
    FAILS(MPI_Pack_external("native", numbers, 1, type, packed, 40, &position), MPI_ERR_ARG);
    FAILS(MPI_Pack_external(NULL, numbers, 1, type, packed, 40, &position), MPI_ERR_ARG);
    long wide = 1L << 40;
    position = 0;
    FAILS(MPI_Pack_external("external32", &wide, 1, MPI_LONG, packed, 40, &position), MPI_ERR_CONVERSION);
    CHECK(position == 0 && MPI_Type_free(&type) == MPI_SUCCESS);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    messages();
    errors();
    external();
    MPI_Finalize();
    return 0;
}
