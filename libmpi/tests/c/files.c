// ranks 3
#define _DEFAULT_SOURCE
#include "path.h"

/* What a program can ask and set of files, and who gets their errors: the handler of a file, or that of MPI_FILE_NULL,
   so with those of the start the calls return, though errors on communicators are fatal. */
static int calls;
static MPI_File failed;

static void on_file(MPI_File *file, int *code, ...) {
    failed = *file;
    calls++;
}

static MPI_File opened(int amode) {
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    return file;
}

static void errors(void) {
    MPI_Errhandler handler, found;
    MPI_File file = MPI_FILE_NULL;
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, -1, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_close(&file), MPI_ERR_FILE);
    FAILS(MPI_File_sync(file), MPI_ERR_FILE);
    CHECK(MPI_File_create_errhandler(on_file, &handler) == MPI_SUCCESS);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, handler) == MPI_SUCCESS);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(calls == 1 && failed == MPI_FILE_NULL);
    FAILS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK(calls == 2);

    file = opened(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL);
    CHECK(MPI_File_get_errhandler(file, &found) == MPI_SUCCESS && found == handler);
    CHECK(MPI_Errhandler_free(&found) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    FAILS(MPI_File_read(file, folder, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    CHECK(calls == 3 && failed == file);
    CHECK(MPI_File_call_errhandler(file, MPI_ERR_IO) == MPI_SUCCESS && calls == 4);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, -1), MPI_ERR_ARG);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_write_at(file, -1, path, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    FAILS(MPI_File_write(file, path, -1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    FAILS(MPI_File_write_all_end(file, path, MPI_STATUS_IGNORE), MPI_ERR_IO);
    FAILS(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "other", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    /* What is wrong with an argument of one rank leaves no other rank waiting. */
    if (rank == 1) {
        FAILS(MPI_File_write_all(file, NULL, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
        FAILS(MPI_File_write_ordered(file, path, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        FAILS(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "other", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    } else {
        CHECK(MPI_File_write_all(file, path, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(MPI_File_write_ordered(file, path, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        FAILS(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    }
    CHECK(calls == 4);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    file = opened(MPI_MODE_RDONLY);
    FAILS(MPI_File_write(file, path, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(rank != 0 || MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_Register_datarep("mine", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, NULL, NULL) == MPI_SUCCESS);
    FAILS(MPI_Register_datarep("mine", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, NULL, NULL), MPI_ERR_DUP_DATAREP);
    FAILS(MPI_Register_datarep_c("native", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, NULL, NULL),
          MPI_ERR_DUP_DATAREP);
}

static void asked(void) {
    int amode, flag, result;
    char text[MPI_MAX_DATAREP_STRING];
    MPI_Offset offset;
    MPI_Aint extent;
    MPI_Count extent_c;
    MPI_Datatype etype, filetype, every_second;
    MPI_Group group, world;
    MPI_Info info;
    MPI_File file;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_set(info, "cb_buffer_size", "8192") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "unknown", "x") == MPI_SUCCESS && MPI_Info_set(info, "cb_nodes", "many") == MPI_SUCCESS);
    amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, info, &file) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_File_get_amode(file, &result) == MPI_SUCCESS && result == amode);
    CHECK(MPI_File_get_info(file, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "cb_buffer_size", 31, text, &flag) == MPI_SUCCESS && flag && !strcmp(text, "8192"));
    CHECK(MPI_Info_get(info, "cb_nodes", 31, text, &flag) == MPI_SUCCESS && flag && !strcmp(text, "3"));
    CHECK(MPI_Info_get(info, "unknown", 31, text, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_File_set_info(file, info) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_File_get_group(file, &group) == MPI_SUCCESS && MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
    CHECK(MPI_Group_compare(group, world, &result) == MPI_SUCCESS && result == MPI_IDENT);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS && MPI_Group_free(&world) == MPI_SUCCESS);
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    CHECK(MPI_File_preallocate(file, 100) == MPI_SUCCESS && MPI_File_set_size(file, 50) == MPI_SUCCESS);
    CHECK(MPI_File_get_size(file, &offset) == MPI_SUCCESS && offset == 50);
    CHECK(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_File_set_atomicity(file, 5) == MPI_SUCCESS);
    CHECK(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && flag == 1);

    CHECK(MPI_File_get_view(file, &offset, &etype, &filetype, text) == MPI_SUCCESS);
    CHECK(offset == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && !strcmp(text, "native"));
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &every_second) == MPI_SUCCESS);
    FAILS(MPI_File_set_view(file, 4, MPI_INT, every_second, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CHECK(MPI_Type_commit(&every_second) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(file, 4, MPI_INT, every_second, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&every_second) == MPI_SUCCESS);
    CHECK(MPI_File_get_view(file, &offset, &etype, &filetype, text) == MPI_SUCCESS);
    CHECK(offset == 4 && etype == MPI_INT && !strcmp(text, "external32"));
    CHECK(MPI_Type_size(filetype, &result) == MPI_SUCCESS && result == 8);
    CHECK(MPI_File_set_view(file, 4, MPI_INT, filetype, "internal", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&filetype) == MPI_SUCCESS);
    CHECK(MPI_File_get_byte_offset(file, 3, &offset) == MPI_SUCCESS && offset == 24);
    CHECK(MPI_File_seek(file, 2, MPI_SEEK_SET) == MPI_SUCCESS && MPI_File_seek(file, -1, MPI_SEEK_CUR) == MPI_SUCCESS);
    CHECK(MPI_File_get_position(file, &offset) == MPI_SUCCESS && offset == 1);
    CHECK(MPI_File_seek_shared(file, 7, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_get_position_shared(file, &offset) == MPI_SUCCESS && offset == 7);
    CHECK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_get_type_extent(file, MPI_LONG, &extent) == MPI_SUCCESS && extent == 4);
    CHECK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent_c) == MPI_SUCCESS && extent_c == 8);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

/* Sequential files have the shared pointer only, and views begin where it is. */
static void sequential(void) {
    char letter = 'a';
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    MPI_File file = opened(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    FAILS(MPI_File_write(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(MPI_File_write_shared(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_get_view(file, &disp, &etype, &filetype, folder + 400) == MPI_SUCCESS && disp == 3);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

int main(void) {
    start();
    make_path();
    errors();
    asked();
    sequential();
    remove_path();
    MPI_Finalize();
    return 0;
}
